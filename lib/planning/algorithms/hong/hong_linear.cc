#include "lib/planning/algorithms/hong/hong_linear.h"

#include "lib/planning/algorithms/hong/checkpoint_plan.h"
#include "lib/planning/algorithms/hong/checkpoint_selection.h"

namespace ckplan {

Result<std::unique_ptr<PreparedSolver>> PrepareHongLinear(const Problem& problem,
                                                          const SolveLimits&) {
  const LayerList list = ListLayers(problem.graph, problem.vertices);
  const Checkpoints checkpoints = SelectDynamicLinear(list);
  return PlanFromCheckpoints(problem, list, checkpoints,
                             "for Eq. 12 on the chain of splitting vertices");
}

}  // namespace ckplan
