// Which algorithms search classes of plans that another algorithm searches as well.
//
// By a paper's own objective, the larger class never has a worse optimum. But no paper's objective
// is the simulated peak, which a budget limits. A search of the larger class alone may therefore
// miss plans that a search of the smaller class finds, so the planner runs both and takes the
// better plan.
#pragma once

#include <string_view>
#include <vector>

#include "lib/planning/plan/solver.h"

namespace ckplan {

// Returns the algorithms with the same objective whose classes of plans are contained in the class
// of this algorithm. Each takes little time compared with it.
std::vector<const SolverInfo*> ContainedIn(std::string_view algorithm);

}  // namespace ckplan
