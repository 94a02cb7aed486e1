// What an algorithm's plans need and cost over a range of budgets.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/base/result.h"
#include "lib/graph/tensor_graph.h"
#include "lib/plan/plan.h"
#include "lib/plan/request.h"
#include "lib/plan/solver.h"

namespace ckplan {

// Peak and overhead of the algorithm's plans for so many budgets, at equal distances from its least
// peak to that of keeping everything, which are found after one preparation; of `best` what
// TraceBestCurve (best_planner.h) finds. The request has no budget, and names that or an algorithm
// of the registry (AllSolvers). With the objective kAuto both of an algorithm's objectives count.
// Errors are those of MakePlan (lib/planner/planner.h).
Result<std::vector<CurvePoint>> PointsByBudgets(const TensorGraph& graph,
                                                const PlanRequest& request, int64_t budget_count,
                                                const SolveLimits& limits);

}  // namespace ckplan
