// Runs a program so that it ends with an exit code even if an exception escapes from it, or from a
// function that must not throw, such as a destructor that finds no memory.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/common/exit_code.h"
#include "lib/base/result.h"

namespace ckplan {

// The program's name in messages, and its exit code when memory runs out. The texts must outlive
// the process.
struct GuardedProgram {
  std::string_view name;
  ExitCode out_of_memory = ExitCode::kInput;
  std::string_view remedy = "another algorithm (`ckplan algos`) may need less";
};

// Runs `program` and returns its exit status. If an exception escapes, prints a message and returns
// 3 if threads or open files ran out, the code of `guarded` if memory did, 4 if a device's memory
// did, and 70 otherwise. If an exception cannot be passed on, the process ends at once with the
// same message and status, and removes its temporary files. It also removes them when a signal
// other than SIGKILL ends it. A file that grows beyond its size limit is a write error.
int RunGuarded(const GuardedProgram& guarded, const std::function<int()>& program);

// Does the work of main(): runs `program` with the arguments under RunGuarded, prints its error,
// and returns its exit status.
using MainProgram = Result<ExitCode> (*)(std::vector<std::string> arguments);
int RunProgram(const GuardedProgram& guarded, MainProgram program, int argc, char** argv);

}  // namespace ckplan
