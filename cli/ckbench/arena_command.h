// ckbench arena: how well and how fast intervals of public benchmarks are placed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/common/exit_code.h"
#include "lib/base/result.h"
#include "lib/schedule/interval_placement.h"

namespace ckplan {

// The arguments behind "ckbench arena".
Result<ExitCode> RunArena(std::vector<std::string> arguments);

// The text of a benchmark file of minimalloc: the header "id,lower,upper,size", then a line for
// each buffer. kInvalidInput lists all lines that are not such, with `path` in the message.
Result<std::vector<LiveInterval>> ParseIntervals(std::string_view text, const std::string& path);

}  // namespace ckplan
