// Plans for one small graph, testdata/graphs/net.json.
#pragma once

#include <string_view>

namespace ckplan {

// Returns whether the text is a plan for that graph that passes the checker.
bool IsAcceptedPlan(std::string_view text);

}  // namespace ckplan
