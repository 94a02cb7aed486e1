// The last line of defence of every program: what escapes from it still ends with an exit code.
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

// All of main(): runs `program` guarded with the arguments, tells its error, and returns its
// status.
using Program = Result<ExitCode> (*)(std::vector<std::string> arguments);
int RunProgram(std::string_view name, Program program, int argc, char** argv);

}  // namespace ckplan
