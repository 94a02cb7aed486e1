// Which algorithms search classes of plans that another algorithm searches as well.
//
// By one paper's objective the larger class never has a worse optimum. But a budget is on the
// simulated peak, which no paper's objective is, so a search of the larger class alone may miss
// plans that one of the smaller class finds: the planner takes the better plan of both.
#pragma once

#include <string_view>
#include <vector>

#include "lib/plan/solver.h"

namespace ckplan {

// The algorithms whose classes the class of this one contains, for the same objective. Each takes
// little time beside it.
std::vector<const SolverInfo*> ContainedIn(std::string_view algorithm);

}  // namespace ckplan
