// Runs a program so that it ends with an exit code even if an exception escapes from it.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/common/exit_code.h"
#include "lib/base/result.h"

namespace ckplan {

// Runs `program` and returns its exit status; an exception ends it with a message and code 70,
// memory that runs out with code 3, and that of a device with code 4.
int RunGuarded(std::string_view name, const std::function<int()>& program);

// All of main(): runs `program` in this way with the arguments, prints its error, and returns its
// exit status.
using Program = Result<ExitCode> (*)(std::vector<std::string> arguments);
int RunProgram(std::string_view name, Program program, int argc, char** argv);

}  // namespace ckplan
