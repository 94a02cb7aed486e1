// ckbench quality and ckbench instances: the time that the algorithm `best` adds at a range of
// budgets, with its bound, compared with the best plan of all other algorithms.
#pragma once

#include <string>
#include <vector>

#include "cli/common/exit_code.h"
#include "lib/base/result.h"

namespace ckplan {

// Runs "ckbench quality" with the arguments after it: models, at 90 to 20 % of the memory and at
// the least.
Result<ExitCode> RunQuality(std::vector<std::string> arguments);

// Runs "ckbench instances" with the arguments after it: published joint graphs, at 90 to 40 % of
// the memory.
Result<ExitCode> RunInstances(std::vector<std::string> arguments);

}  // namespace ckplan
