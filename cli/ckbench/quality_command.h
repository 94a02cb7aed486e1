// ckbench quality and ckbench instances: what the algorithm `best` adds at a range of budgets, with
// its bound, and beside it the best plan of all other algorithms.
#pragma once

#include <string>
#include <vector>

#include "cli/common/exit_code.h"
#include "lib/base/result.h"

namespace ckplan {

// The arguments behind "ckbench quality": models, at 90 to 20 % of the memory and at the least.
Result<ExitCode> RunQuality(std::vector<std::string> arguments);

// The arguments behind "ckbench instances": published joint graphs, at 90 to 40 % of the memory.
Result<ExitCode> RunInstances(std::vector<std::string> arguments);

}  // namespace ckplan
