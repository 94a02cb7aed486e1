#include "lib/planning/algorithms/hong/hong_dynamic.h"

#include <fmt/format.h>

#include "lib/planning/algorithms/hong/checkpoint_plan.h"
#include "lib/planning/algorithms/hong/checkpoint_selection.h"

namespace ckplan {

Result<std::unique_ptr<PreparedSolver>> PrepareHongDynamic(const Problem& problem,
                                                           const SolveLimits& limits) {
  const LayerList list = ListLayers(problem.graph, problem.vertices);
  if (list.candidates.size() > kMaxDynamicCandidates) {
    return MakeError(
        ErrorCode::kUnsupported,
        fmt::format("hong-dynamic takes time quadratic in the layers, and there are {}; "
                    "hong-linear finds the same optimum",
                    list.candidates.size()));
  }
  CKPLAN_ASSIGN_OR_RETURN(const Checkpoints checkpoints, SelectDynamic(list, limits.stop));
  return PlanFromCheckpoints(problem, list, checkpoints,
                             "for Eq. 12 on the chain of splitting vertices");
}

}  // namespace ckplan
