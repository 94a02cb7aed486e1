#include "lib/planning/algorithms/hong/hong_selection.h"

#include "lib/planning/algorithms/hong/checkpoint_plan.h"
#include "lib/planning/algorithms/hong/checkpoint_selection.h"

namespace ckplan {

Result<std::unique_ptr<PreparedSolver>> PrepareHongSelection(const Problem& problem,
                                                             const SolveLimits& limits) {
  const LayerList list = ListLayers(problem.graph, problem.vertices);
  CKPLAN_ASSIGN_OR_RETURN(const Checkpoints checkpoints, SelectStatic(list, limits.stop));
  return PlanFromCheckpoints(problem, list, checkpoints,
                             "for Eq. 6 on the chain of splitting vertices");
}

}  // namespace ckplan
