// Runs a program so that it ends with an exit code even if an exception escapes from it, or from a
// function that may throw none: a destructor that finds no memory, for example.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/common/exit_code.h"
#include "lib/base/result.h"

namespace ckplan {

// What messages call a program, and how it ends where memory runs out. The texts must outlive the
// process.
struct GuardedProgram {
  std::string_view name;
  ExitCode out_of_memory = ExitCode::kInput;
  std::string_view remedy = "another algorithm (`ckplan algos`) may need less";
};

// Runs `program` and returns its exit status. If an exception escapes, prints a message and returns
// 70; 3 if threads or open files ran out, the code of `guarded` if memory did, and 4 if a device's
// memory did. Where an exception cannot be passed on, the process ends at once with the same
// message and status, and without its temporary files; and so it does where a signal ends it, but
// for SIGKILL. A file that grows beyond its limit is an error of writing.
int RunGuarded(const GuardedProgram& guarded, const std::function<int()>& program);

// The whole of main(): runs `program` with the arguments and under RunGuarded, prints its error,
// and returns its exit status.
using Program = Result<ExitCode> (*)(std::vector<std::string> arguments);
int RunProgram(const GuardedProgram& guarded, Program program, int argc, char** argv);

}  // namespace ckplan
