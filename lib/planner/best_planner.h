// Plans by the algorithm `best` for forward graphs: the graph is expanded into a joint graph, which
// lib/algorithms/best solves; what it returns becomes a plan like any other.
#pragma once

#include "lib/base/result.h"
#include "lib/graph/tensor_graph.h"
#include "lib/plan/plan.h"
#include "lib/plan/request.h"
#include "lib/plan/solver.h"

namespace ckplan {

// The request has passed the planner's checks. The plan is no worse than that of any algorithm of
// the registry for the same request, since those are what it starts from unless it is proven that
// none is better. Errors are those of MakePlan.
Result<Plan> MakeBestPlan(const TensorGraph& graph, const PlanRequest& request,
                          const SolveLimits& limits);

}  // namespace ckplan
