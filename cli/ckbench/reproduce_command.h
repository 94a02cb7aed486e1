// ckbench reproduce: the papers' published figures beside ours.
#pragma once

#include <string>
#include <vector>

#include "cli/common/exit_code.h"
#include "lib/base/result.h"

namespace ckplan {

// The arguments of the whole program, reproduce or arena. kUsage: no such command or paper.
Result<ExitCode> RunBench(std::vector<std::string> arguments);

}  // namespace ckplan
