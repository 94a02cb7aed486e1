#include "lib/algorithms/baselines/keep_all.h"

#include <utility>

#include "lib/plan/fixed_plan.h"

namespace ckplan {

Result<std::unique_ptr<PreparedSolver>> PrepareKeepAll(const Problem& problem, const SolveLimits&) {
  SolveOutcome outcome;
  outcome.strategy = KeptSet{IdVector<NodeId, bool>(problem.vertices.size(), true)};
  outcome.paper = {std::nullopt, problem.vertices.total_memory(), Cost(0)};
  outcome.is_optimal = true;
  outcome.guarantee = "no plan has less overhead: nothing is recomputed";
  return std::unique_ptr<PreparedSolver>(new FixedPlanSolver(std::move(outcome)));
}

}  // namespace ckplan
