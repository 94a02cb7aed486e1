// ckbench arena: measures how well and how fast the intervals of public benchmarks are placed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/common/exit_code.h"
#include "lib/base/result.h"
#include "lib/schedule/interval_placement.h"

namespace ckplan {

// Runs the command with the arguments after "ckbench arena".
Result<ExitCode> RunArena(std::vector<std::string> arguments);

// Parses a benchmark file of minimalloc: the header "id,lower,upper,size", then a line for each
// buffer. kInvalidInput lists all malformed lines, with `path` in the message.
Result<std::vector<LiveInterval>> ParseIntervals(std::string_view text, const std::string& path);

}  // namespace ckplan
