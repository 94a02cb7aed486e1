#include "lib/planning/planner/solve.h"

#include <string>
#include <utility>
#include <vector>

#include "lib/base/stop.h"
#include "lib/planning/algorithms/given/given.h"
#include "lib/planning/planner/registry.h"
#include "lib/planning/planner/run_search.h"
#include "lib/planning/planner/strategy_search.h"

namespace ckplan {
namespace {

// Returns the actions from the decisions or, without decisions, those of keep-all.
Result<Answer> SolveGivenRuns(const PlanProblem& problem) {
  const std::optional<Decisions>& decisions = problem.request.decisions;
  CKPLAN_ASSIGN_OR_RETURN(Schedule schedule,
                          StepsOfDecisions(problem.step, decisions ? &*decisions : nullptr));
  return Answer{std::move(schedule), false, std::string(kGuaranteeOfDecisions)};
}

}  // namespace

Result<Answer> SolveWith(const SolverInfo& info, const PlanProblem& problem,
                         const SolveLimits& limits) {
  if (!problem.step.is_joint() || !PlansRuns(info)) {
    return SolveStrategies(info, problem, limits);
  }
  const StopScope scope(limits.stop);
  PollStop();
  return info.name == kGivenAlgorithm ? SolveGivenRuns(problem) : SolveRuns(problem, limits, info);
}

}  // namespace ckplan
