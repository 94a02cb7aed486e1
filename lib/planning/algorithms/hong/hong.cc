#include "lib/planning/algorithms/hong/hong.h"

#include <fmt/format.h>

#include <utility>

#include "lib/planning/algorithms/hong/checkpoint_selection.h"
#include "lib/planning/plan/fixed_plan.h"

namespace ckplan {

std::unique_ptr<PreparedSolver> PlanFromCheckpoints(const Problem& problem, const LayerList& list,
                                                    const Checkpoints& checkpoints,
                                                    std::string_view scope) {
  LowerSetSequence sequence;
  sequence.segment_of = list.Cut(checkpoints.positions, &sequence.segment_count);
  SolveOutcome outcome;
  outcome.strategy = std::move(sequence);
  outcome.paper = {std::nullopt, checkpoints.objective,
                   list.RecomputedTime(problem.vertices, checkpoints.positions)};
  outcome.is_optimal = checkpoints.is_proven;
  outcome.guarantee =
      checkpoints.is_proven ? "optimal " : std::string(kStoppedEarly) + "best found ";
  outcome.guarantee += scope;
  return std::make_unique<FixedPlanSolver>(std::move(outcome));
}

Result<std::unique_ptr<PreparedSolver>> PrepareHongDynamic(const Problem& problem,
                                                           const SolveLimits& limits) {
  const LayerList list = ListLayers(problem.graph, problem.vertices);
  if (list.candidates.size() > kMaxDynamicCandidates) {
    return MakeError(
        ErrorCode::kUnsupported,
        fmt::format("hong-dynamic takes time quadratic in the number of layers, here {}; "
                    "hong-linear finds the same optimum",
                    list.candidates.size()));
  }
  CKPLAN_ASSIGN_OR_RETURN(const Checkpoints checkpoints, SelectDynamic(list, limits.stop));
  return PlanFromCheckpoints(problem, list, checkpoints,
                             "for Eq. 12 on the chain of splitting vertices");
}

Result<std::unique_ptr<PreparedSolver>> PrepareHongLinear(const Problem& problem,
                                                          const SolveLimits&) {
  const LayerList list = ListLayers(problem.graph, problem.vertices);
  const Checkpoints checkpoints = SelectDynamicLinear(list);
  return PlanFromCheckpoints(problem, list, checkpoints,
                             "for Eq. 12 on the chain of splitting vertices");
}

Result<std::unique_ptr<PreparedSolver>> PrepareHongSelection(const Problem& problem,
                                                             const SolveLimits& limits) {
  const LayerList list = ListLayers(problem.graph, problem.vertices);
  CKPLAN_ASSIGN_OR_RETURN(const Checkpoints checkpoints, SelectStatic(list, limits.stop));
  return PlanFromCheckpoints(problem, list, checkpoints,
                             "for Eq. 6 on the chain of splitting vertices");
}

}  // namespace ckplan
