// ckbench speed: how fast plans are simulated, and searched for by annealing.
#pragma once

#include <string>
#include <vector>

#include "cli/common/exit_code.h"
#include "lib/base/result.h"

namespace ckplan {

// The arguments behind "ckbench speed".
Result<ExitCode> RunSpeed(std::vector<std::string> arguments);

}  // namespace ckplan
