#include "lib/planner/run_search.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>

#include "lib/base/stop.h"
#include "lib/planner/obedience.h"
#include "lib/schedule/simulate.h"

namespace ckplan {
namespace {

// Returns the setting of a knob that limits the peak, or the nearest one if the budget is out of
// range.
int64_t LimitFor(const PlanProblem& problem, const Knob& knob) {
  return problem.budget ? std::clamp(problem.budget->count(), knob.min, knob.max) : knob.min;
}

// Returns the algorithm's outcome, changed to obey the constraints, which the algorithm does not
// know.
Result<RunOutcome> Obeying(const PlanProblem& problem, Result<RunOutcome> solved) {
  if (!solved.ok() || problem.rules == nullptr || Obeys(*problem.rules, solved->runs)) {
    return solved;
  }
  solved->runs = problem.Obeying(solved->runs);
  solved->is_optimal = false;
  solved->guarantee += kChangedToObey;
  return solved;
}

// The number of settings that are tried of a knob that limits the peak.
constexpr int64_t kLimitsTried = 16;

// Lower is better: first what is above the limit, then what counts within it.
std::tuple<int64_t, int64_t, int64_t> RankOf(const PlanProblem& problem,
                                             const Simulation& simulation) {
  const int64_t peak = simulation.peak.count();
  const int64_t overhead = simulation.overhead.count();
  if (problem.most_added) {
    return {std::max<int64_t>(0, overhead - problem.most_added->count()), peak, overhead};
  }
  const int64_t budget = problem.budget.value_or(Bytes(0)).count();
  return {std::max<int64_t>(0, peak - budget), overhead, peak};
}

// Returns the best outcome of all settings: of least time within the budget, or of least peak.
Result<RunOutcome> SolveAtEachSetting(const PlanProblem& problem, const SolveLimits& limits,
                                      PreparedRunSolver* solver) {
  const Knob knob = solver->knob();
  if (!problem.has_budget()) {
    return Obeying(problem, solver->Solve(knob.preset, limits));
  }
  Simulator simulator(problem.step.joint());
  std::optional<RunOutcome> best;
  std::tuple<int64_t, int64_t, int64_t> least;
  const bool limits_peak = knob.kind == Knob::Kind::kPeakLimit;
  const int64_t steps = limits_peak ? kLimitsTried : knob.grid_steps;
  const int64_t distance = std::max<int64_t>(1, (knob.max - knob.min) / steps);
  for (int64_t setting = knob.min; setting <= knob.max; setting += distance) {
    PollStop();
    Result<RunOutcome> solved = Obeying(problem, solver->Solve(setting, limits));
    // The limit is too low for any plan. With higher limits, there may be plans that fit after they
    // are changed to obey the constraints.
    const bool is_refused = !solved.ok() && solved.error().code == ErrorCode::kInfeasible;
    if (is_refused && limits_peak && setting + distance <= knob.max) continue;
    CKPLAN_ASSIGN_OR_RETURN(RunOutcome outcome, std::move(solved));
    const Simulation simulation = simulator.Run(outcome.runs).value();
    const auto rank = RankOf(problem, simulation);
    if (best && rank >= least) continue;
    least = rank;
    best = std::move(outcome);
  }
  return *std::move(best);
}

}  // namespace

Result<Answer> SolveByRuns(const PlanProblem& problem, const SolveLimits& limits,
                           PrepareRuns prepare) {
  CKPLAN_ASSIGN_OR_RETURN(const std::unique_ptr<PreparedRunSolver> solver,
                          prepare(problem.step.joint(), limits));
  const Knob knob = solver->knob();
  // Plans that are changed afterwards may need more than the limit that they were made for.
  const bool limits_peak =
      knob.kind == Knob::Kind::kPeakLimit && problem.rules == nullptr && !problem.most_added;
  Result<RunOutcome> outcome = limits_peak ? solver->Solve(LimitFor(problem, knob), limits)
                                           : SolveAtEachSetting(problem, limits, solver.get());
  if (!outcome.ok() && outcome.error().code == ErrorCode::kInfeasible) {
    outcome = Obeying(problem, solver->Solve(knob.min, limits));
  }
  if (!outcome.ok()) return std::move(outcome).error();
  return Answer{ScheduleOfRuns(outcome->runs), outcome->is_optimal, std::move(outcome->guarantee)};
}

}  // namespace ckplan
