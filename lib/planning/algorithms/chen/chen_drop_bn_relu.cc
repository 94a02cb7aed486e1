#include "lib/planning/algorithms/chen/chen_drop_bn_relu.h"

#include <utility>

#include "lib/planning/algorithms/chen/kept_plan.h"
#include "lib/planning/algorithms/chen/op_price.h"
#include "lib/planning/plan/fixed_plan.h"

namespace ckplan {

Result<std::unique_ptr<PreparedSolver>> PrepareChenDropBnRelu(const Problem& problem,
                                                              const SolveLimits&) {
  IdVector<NodeId, bool> is_kept(problem.vertices.size());
  for (const NodeId v : problem.vertices.ids()) {
    is_kept[v] = PriceOf(problem.graph.node(v).op) != OpPrice::kNormOrActivation;
  }
  SolveOutcome outcome =
      PlanOfKept(problem, std::move(is_kept),
                 "heuristic: results of normalisations and activations are dropped, others kept");
  return std::unique_ptr<PreparedSolver>(new FixedPlanSolver(std::move(outcome)));
}

}  // namespace ckplan
