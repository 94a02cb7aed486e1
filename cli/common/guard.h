// Runs a program so that it ends with an exit code even if an exception escapes from it.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/common/exit_code.h"
#include "lib/base/result.h"

namespace ckplan {

// Runs `program` and returns its exit status. If an exception escapes, prints a message and returns
// 70; 3 if memory ran out, and 4 if a device's memory did.
int RunGuarded(std::string_view name, const std::function<int()>& program);

// The whole of main(): runs `program` with the arguments and under RunGuarded, prints its error,
// and returns its exit status.
using Program = Result<ExitCode> (*)(std::vector<std::string> arguments);
int RunProgram(std::string_view name, Program program, int argc, char** argv);

}  // namespace ckplan
