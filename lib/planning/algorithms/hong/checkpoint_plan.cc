#include "lib/planning/algorithms/hong/checkpoint_plan.h"

#include <utility>

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

}  // namespace ckplan
