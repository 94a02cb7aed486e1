// ckbench reproduce: prints the papers' published figures next to ours.
#pragma once

#include <string>
#include <vector>

#include "cli/common/exit_code.h"
#include "lib/base/result.h"

namespace ckplan {

// Runs the program with all of its arguments. kUsage: there is no such command or paper.
Result<ExitCode> RunBench(std::vector<std::string> arguments);

}  // namespace ckplan
