#include "lib/planning/planner/solve.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/stop.h"
#include "lib/base/text.h"
#include "lib/planning/algorithms/given/given.h"
#include "lib/planning/plan/run_solver.h"
#include "lib/planning/planner/apply_constraints.h"
#include "lib/planning/planner/peak_budget.h"
#include "lib/planning/planner/registry.h"
#include "lib/problem/schedule/simulate.h"

namespace ckplan {
namespace {

// Returns the setting nearest to the budget of a knob that limits the peak.
int64_t LimitFor(const PlanProblem& problem, const Knob& knob) {
  return problem.budget ? std::clamp(problem.budget->count(), knob.min, knob.max) : knob.min;
}

// Returns the algorithm's outcome, adjusted to the constraints, which the algorithm ignores.
Result<RunOutcome> Constrain(const PlanProblem& problem, Result<RunOutcome> solved) {
  if (!solved.ok() || problem.rules == nullptr || Satisfies(*problem.rules, solved->runs)) {
    return solved;
  }
  solved->runs = problem.Constrain(solved->runs);
  solved->schedule.reset();
  solved->is_optimal = false;
  solved->guarantee += kChangedForConstraints;
  return solved;
}

// The number of settings to try for a knob that limits the peak.
constexpr int64_t kLimitsTried = 16;

Schedule ScheduleFor(const RunOutcome& outcome) {
  return outcome.schedule ? *outcome.schedule : ScheduleOfRuns(outcome.runs);
}

// Returns how far a plan exceeds the problem's limits; 0 if it fits.
int64_t ExcessOf(const PlanProblem& problem, const CurvePoint& point) {
  if (problem.most_added) {
    return std::max<int64_t>(0, (point.overhead - *problem.most_added).count());
  }
  return problem.budget ? std::max<int64_t>(0, (point.peak - *problem.budget).count()) : 0;
}

bool IsBetterRun(const PlanProblem& problem, const CurvePoint& a, const CurvePoint& b) {
  const int64_t excess_a = ExcessOf(problem, a);
  const int64_t excess_b = ExcessOf(problem, b);
  return excess_a != excess_b ? excess_a < excess_b : problem.IsBetter(a, b);
}

// Returns the settings to try, in increasing order. For a balance with a knob that limits the peak,
// these are the algorithm's lowest peak and the budgets of its curve.
Result<std::vector<int64_t>> SettingsFor(const PlanProblem& problem, const SolveLimits& limits,
                                         PreparedRunSolver* solver) {
  const Knob knob = solver->knob();
  const bool limits_peak = knob.kind == Knob::Kind::kPeakLimit;
  std::vector<int64_t> settings;
  if (limits_peak && problem.balance && problem.rules == nullptr) {
    CKPLAN_ASSIGN_OR_RETURN(const RunOutcome least, solver->Solve(knob.min, limits));
    const Bytes peak = Simulator(problem.step).Run(ScheduleFor(least)).value().peak;
    settings.push_back(knob.min);
    for (const Bytes budget : CurveBudgets(peak, KeepAllPeak(problem.step))) {
      settings.push_back(std::clamp(budget.count(), knob.min, knob.max));
    }
    return settings;
  }
  const int64_t steps = limits_peak ? kLimitsTried : knob.grid_steps;
  const int64_t distance = std::max<int64_t>(1, (knob.max - knob.min) / steps);
  for (int64_t at = knob.min; at <= knob.max; at += distance) settings.push_back(at);
  return settings;
}

// Returns the best outcome over all settings: the least time within the budget, or the lowest peak.
Result<RunOutcome> SolveAtEachSetting(const PlanProblem& problem, const SolveLimits& limits,
                                      PreparedRunSolver* solver) {
  const Knob knob = solver->knob();
  if (!problem.has_budget()) {
    return Constrain(problem, solver->Solve(knob.preset, limits));
  }
  Simulator simulator(problem.step);
  std::optional<RunOutcome> best;
  CurvePoint best_point;
  const bool limits_peak = knob.kind == Knob::Kind::kPeakLimit;
  CKPLAN_ASSIGN_OR_RETURN(const std::vector<int64_t> settings,
                          SettingsFor(problem, limits, solver));
  for (const int64_t setting : settings) {
    PollStop();
    Result<RunOutcome> solved = Constrain(problem, solver->Solve(setting, limits));
    // No plan fits this limit. Higher limits may have plans that fit after adjusting them to the
    // constraints.
    const bool is_refused = !solved.ok() && solved.error().code == ErrorCode::kInfeasible;
    if (is_refused && limits_peak && setting != settings.back()) continue;
    CKPLAN_ASSIGN_OR_RETURN(RunOutcome outcome, std::move(solved));
    const Simulation simulation = simulator.Run(ScheduleFor(outcome)).value();
    const CurvePoint point{simulation.peak, simulation.overhead};
    if (best && !IsBetterRun(problem, point, best_point)) continue;
    best_point = point;
    best = std::move(outcome);
  }
  return *std::move(best);
}

// Plans a joint graph with an algorithm that also plans forward graphs
// (lib/planning/plan/run_solver.h). Returns the best plan over all settings of its knob or, if none
// fits the budget, its plan with the lowest peak. Returns the algorithm's errors.
Result<Answer> SolveRuns(const PlanProblem& problem, const SolveLimits& limits,
                         const SolverInfo& info) {
  const JointGraph& graph = problem.step.joint();
  const bool moves = problem.offload != nullptr && info.prepare_offload != nullptr;
  CKPLAN_ASSIGN_OR_RETURN(const std::unique_ptr<PreparedRunSolver> solver,
                          moves ? info.prepare_offload(graph, *problem.offload, limits)
                                : info.prepare_runs(graph, limits));
  const Knob knob = solver->knob();
  // Adjusted plans may exceed their original limit.
  const bool is_limit = knob.kind == Knob::Kind::kPeakLimit && problem.rules == nullptr &&
                        !problem.most_added && !problem.balance;
  Result<RunOutcome> outcome = is_limit ? solver->Solve(LimitFor(problem, knob), limits)
                                        : SolveAtEachSetting(problem, limits, solver.get());
  if (!outcome.ok() && outcome.error().code == ErrorCode::kInfeasible) {
    outcome = Constrain(problem, solver->Solve(knob.min, limits));
  }
  if (!outcome.ok()) return std::move(outcome).error();
  return Answer{ScheduleFor(*outcome), outcome->is_optimal, std::move(outcome->guarantee)};
}

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

Error OutOfMemoryError(const SolverInfo& info, const SolveLimits& limits) {
  const std::string available = limits.memory
                                    ? fmt::format("the limit of {}", HumanBytes(*limits.memory))
                                    : std::string("is available");
  return Error{ErrorCode::kUnsupported,
               fmt::format("{} needs more memory than {}; another algorithm may need less",
                           info.name, available),
               {},
               {"or raise", {{std::string(kMemoryLimitField), ""}}}};
}

bool IsOutOfMemory(const Error& error) {
  const std::vector<Remedy::Setting>& settings = error.remedy.settings;
  return !settings.empty() && settings.front().name == kMemoryLimitField;
}

}  // namespace ckplan
