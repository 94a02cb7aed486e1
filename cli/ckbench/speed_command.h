// ckbench speed: measures how fast plans are simulated, and how fast annealing searches for them.
#pragma once

#include <string>
#include <vector>

#include "cli/common/exit_code.h"
#include "lib/base/result.h"

namespace ckplan {

// Runs the command with the arguments after "ckbench speed".
Result<ExitCode> RunSpeed(std::vector<std::string> arguments);

}  // namespace ckplan
