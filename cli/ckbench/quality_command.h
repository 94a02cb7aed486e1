// ckbench quality: what the algorithm `best` adds at a range of budgets, with its bound, beside the
// best plan of all other algorithms.
#pragma once

#include <string>
#include <vector>

#include "cli/common/exit_code.h"
#include "lib/base/result.h"

namespace ckplan {

// The arguments behind "ckbench quality".
Result<ExitCode> RunQuality(std::vector<std::string> arguments);

}  // namespace ckplan
