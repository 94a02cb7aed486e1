#include "lib/solvers/hong_linear.h"

#include "lib/graph/checkpoint_selection.h"
#include "lib/solvers/checkpoint_plan.h"

namespace ckplan {

Result<std::unique_ptr<PreparedSolver>> PrepareHongLinear(const Problem& problem,
                                                          const SolveLimits&) {
  const LayerList list = ListLayers(problem.graph, problem.vertices);
  const Checkpoints checkpoints = SelectDynamicLinear(list);
  return PlanFromCheckpoints(problem, list, checkpoints,
                             "optimal for Eq. 12 on the chain of splitting vertices");
}

}  // namespace ckplan
