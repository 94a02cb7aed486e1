#include "lib/planning/planner/joint_best.h"

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/check.h"
#include "lib/base/stop.h"
#include "lib/planning/algorithms/best/best.h"
#include "lib/planning/algorithms/best/curve/trade_off_curve.h"
#include "lib/planning/algorithms/best/trade_off.h"
#include "lib/planning/plan/added_time.h"
#include "lib/planning/planner/apply_constraints.h"
#include "lib/planning/planner/best_search.h"
#include "lib/planning/planner/guarantees.h"
#include "lib/planning/planner/warm_starts.h"
#include "lib/problem/schedule/simulate.h"

namespace ckplan {
namespace {

bool IsEnough(const BestOptions& options, const BestOutcome& best) {
  return options.enough && best.runs && best.overhead <= *options.enough;
}

}  // namespace

WarmStartLimits WarmStartLimitsFor(SearchEffort effort) {
  return {WarmStartWork(effort), /*include_own_order=*/true,
          /*include_slow=*/effort != SearchEffort::kQuick};
}

Result<BestOutcome> SolveBestAt(SearchEffort effort, const PlanProblem& problem,
                                BestProblem* shared, const BestOptions& options,
                                const SolveLimits& limits) {
  CKPLAN_ASSIGN_OR_RETURN(BestOutcome best, SolveBest(shared, options));
  if (best.is_optimal || best.is_infeasible || limits.stop.stop_requested()) return best;
  if (IsEnough(options, best)) return best;
  Simulator simulator(problem.step);
  BestOptions again = options;
  const size_t known = again.starts.size();
  for (const Schedule& other : WarmStarts(problem, WarmStartLimitsFor(effort), limits)) {
    const int64_t overhead = simulator.Run(other).value().overhead.count();
    if (!best.runs || overhead < best.overhead) again.starts.push_back(RunsOf(other));
  }
  if (again.starts.size() == known) return best;
  // Programs and cuts would only find the same plans, but annealing continues from a better plan.
  again.work.programs = again.work.any_order = 0;
  again.before = &best;
  return SolveBest(shared, again);
}

bool IsFinal(const BestOptions& options, const BestOutcome& best, const SolveLimits& limits) {
  const bool is_optimal_in_any_order = best.runs && best.overhead <= best.any_order_bound;
  return is_optimal_in_any_order || best.is_infeasible || limits.stop.stop_requested() ||
         IsEnough(options, best);
}

Result<BestOutcome> SolveBestWithin(const PlanProblem& problem, BestProblem* shared,
                                    BestOptions options, const SolveLimits& limits, size_t done) {
  BestOutcome best;
  for (const SearchEffort effort : std::span(kEfforts).subspan(done)) {
    options.work = WorkOf(effort);
    CKPLAN_ASSIGN_OR_RETURN(best, SolveBestAt(effort, problem, shared, options, limits));
    options.before = &best;
    if (IsFinal(options, best, limits) || effort == problem.request.effort) break;
  }
  return best;
}

namespace {

std::string GuaranteeOf(const PlanProblem& problem, const BestOutcome& outcome) {
  return GuaranteeOf(problem, outcome.scope, outcome.is_optimal,
                     outcome.overhead - outcome.lower_bound);
}

Answer AnswerFrom(const PlanProblem& problem, const BestOutcome& best) {
  Answer answer{ScheduleOfRuns(*best.runs), best.is_optimal, GuaranteeOf(problem, best)};
  answer.lower_bound = Cost(best.lower_bound);
  answer.certificate = Certificate{best.proof, best.scope, Cost(0), best.least_peak, Bytes(0)};
  return answer;
}

// Returns a plan with the lowest peak found.
Result<Answer> SolveBestForMinPeak(const PlanProblem& problem, BestProblem* shared,
                                   const BestOptions& options, const SolveLimits& limits) {
  const JointGraph& graph = problem.step.joint();
  BestOptions probe = options;
  probe.work = kQuickWork;
  CKPLAN_ASSIGN_OR_RETURN(const LeastPeak least,
                          FindMinPeak(shared, probe, KeepAllPeak(graph).count()));
  std::vector<OpId> runs = least.runs.value_or(problem.Constrain(OwnOrder(graph)));
  Simulator simulator(graph);
  const auto peak_of = [&](const std::vector<OpId>& plan) {
    return simulator.Run(plan).value().peak;
  };
  PlanProblem for_least = problem;
  for_least.budget.reset();
  for_least.minimizes_peak = true;
  if (least.bound.bytes < peak_of(runs)) {
    for (const Schedule& other :
         WarmStarts(for_least, WarmStartLimitsFor(problem.request.effort), limits)) {
      std::vector<OpId> found = RunsOf(other);
      if (peak_of(found) < peak_of(runs)) runs = std::move(found);
    }
  }
  BestOptions again = options;
  again.budget = peak_of(runs).count();
  again.starts = {runs};
  CKPLAN_ASSIGN_OR_RETURN(const BestOutcome best, SolveBest(shared, again));
  CKPLAN_CHECK(best.runs.has_value(), "best returns at least its best start");
  Answer outcome = AnswerFrom(problem, best);
  PeakBound& bound = outcome.certificate->peak;
  if (least.bound.bytes > bound.bytes) bound = least.bound;
  const bool is_least = bound.bytes.count() == again.budget;
  outcome.is_optimal &= is_least;
  if (is_least) {
    outcome.guarantee = MinPeakGuarantee(bound.scope, problem.request) + outcome.guarantee;
  }
  return outcome;
}

// Finds plans with low peaks and their trade-off curve, for requests without a budget.
class CurveSearch {
 public:
  CurveSearch(const PlanProblem& problem, BestProblem* shared, const BestOptions& options)
      : problem_(problem),
        shared_(shared),
        options_(options),
        most_added_(AllowedAddedTime(problem)),
        curve_(shared->curve()) {
    curve_->Offer(problem.Constrain(OwnOrder(problem.step.joint())));
  }

  // Returns the plan with the lowest peak found that adds no more than a plan without a budget may,
  // and little time for that peak.
  Result<Answer> Solve(const SolveLimits& limits) {
    try {
      CKPLAN_RETURN_IF_ERROR(
          TraceShownPoints(most_added_, problem_.step.cost(), options_.work.curve, shared_));
    } catch (const Stopped&) {
      // A stop: keep the best plan found so far.
    }
    CKPLAN_ASSIGN_OR_RETURN(Answer outcome,
                            SolveFrom(curve_->LeastWithin(most_added_.count()), limits));
    TakeLeastWithin(&outcome);
    outcome.curve = ShownPoints(ShownPointsWith(outcome), problem_.step.cost());
    AddMinPeaks(*curve_, &outcome.curve);
    return outcome;
  }

  // Returns the plan with the best balance among all that Trace and the search for the lowest peak
  // find, and around the best of these.
  Result<Answer> SolveForBalance(const Balance& balance, const SolveLimits& limits) {
    CKPLAN_ASSIGN_OR_RETURN(Answer best, Solve(limits));
    const Result<Answer> least = CatchStop([&]() -> Result<Answer> {
      RefineForBalance(balance, options_.work.curve, curve_);
      return SolveBestForMinPeak(problem_, shared_, options_, limits);
    });
    // A stop: keep the best plan found so far.
    if (!least.ok() && !limits.stop.stop_requested()) return least;
    if (least.ok() && balance.IsBetter(PointOf(*least), PointOf(best))) best = *least;
    const CurvePoint found = balance.BestOf(curve_->Points());
    if (balance.IsBetter(found, PointOf(best))) {
      CKPLAN_ASSIGN_OR_RETURN(best, SolveFrom(*curve_->BestWithin(found.peak.count()), limits));
    }
    best.curve.clear();
    MarkBalanced(&best);
    return best;
  }

  // Returns all points found: those of Solve, and those of a range of budgets.
  Result<std::vector<CurvePoint>> Trace(const SolveLimits& limits) {
    CKPLAN_ASSIGN_OR_RETURN(const Answer outcome, Solve(limits));
    if (shared_->flat().op_count > kFewProgramOps) return ShownPointsWith(outcome);
    RefineBetweenPoints(options_.work.curve, curve_);
    std::vector<CurvePoint> points = ShownPointsWith(outcome);
    // The search for the lowest peak also starts from other algorithms' plans.
    CKPLAN_ASSIGN_OR_RETURN(const Answer least,
                            SolveBestForMinPeak(problem_, shared_, options_, limits));
    points.push_back(PointOf(least));
    return FrontOf(std::move(points));
  }

 private:
  // Returns a plan of no higher peak that adds no more time. May run a longer search.
  Result<Answer> SolveFrom(const TradeOffCurve::PlanOnCurve& known, const SolveLimits& limits) {
    BestOptions again = options_;
    again.budget = known.peak;
    again.starts = {known.runs};
    PlanProblem within = problem_;
    within.budget = Bytes(again.budget);
    CKPLAN_ASSIGN_OR_RETURN(const BestOutcome best,
                            SolveBestWithin(within, shared_, again, limits));
    CKPLAN_CHECK(best.runs.has_value(), "best returns at least its best start");
    return AnswerFrom(problem_, best);
  }

  // Takes a plan with a lower peak that was found on the way; the curve would show it.
  void TakeLeastWithin(Answer* answer) const {
    const TradeOffCurve::PlanOnCurve& least = curve_->LeastWithin(most_added_.count());
    const CurvePoint point = PointOf(*answer);
    const bool is_less =
        std::pair(Bytes(least.peak), Cost(least.overhead)) < std::pair(point.peak, point.overhead);
    if (!is_less || Cost(least.overhead) > std::max(most_added_, point.overhead)) return;
    answer->schedule = ScheduleOfRuns(least.runs);
    answer->is_optimal = Cost(least.overhead) == *answer->lower_bound;
    answer->guarantee = GuaranteeOf(problem_, answer->certificate->scope, answer->is_optimal,
                                    least.overhead - answer->lower_bound->count());
  }

  CurvePoint PointOf(const Answer& outcome) const {
    const Simulation own = Simulator(problem_.step).Run(outcome.schedule).value();
    return {own.peak, own.overhead};
  }

  std::vector<CurvePoint> ShownPointsWith(const Answer& outcome) const {
    std::vector<CurvePoint> points = curve_->Points();
    points.push_back(PointOf(outcome));
    return FrontOf(std::move(points));
  }

  const PlanProblem& problem_;
  BestProblem* const shared_;
  const BestOptions options_;
  const Cost most_added_;
  TradeOffCurve* const curve_;
};

// Solves a problem with a budget and without a link to the host.
Result<WithinBudget> SolveWithinBudget(const PlanProblem& problem, const SolveLimits& limits) {
  BestProblem shared(problem.step.joint(), problem.is_recomputed);
  BestOptions options;
  options.budget = problem.budget->count();
  CKPLAN_ASSIGN_OR_RETURN(const BestOutcome best,
                          SolveBestWithin(problem, &shared, options, limits));
  WithinBudget found{std::nullopt, best.least_peak};
  if (best.runs) found.answer = AnswerFrom(problem, best);
  return found;
}

// Solves a problem without a budget and without a link to the host.
Result<Answer> SolveWithoutBudget(const PlanProblem& problem, const SolveLimits& limits) {
  BestProblem shared(problem.step.joint(), problem.is_recomputed);
  BestOptions options;
  options.work = WorkOf(problem.request.effort);
  if (problem.minimizes_peak) return SolveBestForMinPeak(problem, &shared, options, limits);
  if (problem.balance) {
    PlanProblem of_curve = problem;
    of_curve.balance.reset();
    return CurveSearch(of_curve, &shared, options).SolveForBalance(*problem.balance, limits);
  }
  return CurveSearch(problem, &shared, options).Solve(limits);
}

// Solves the problem without its link to the host.
Result<Answer> SolveOnDevice(PlanProblem problem, const SolveLimits& limits) {
  problem.offload = nullptr;
  return SolveWithoutBudget(problem, limits);
}

}  // namespace

Result<WithinBudget> SolveJointByBest(const PlanProblem& problem, const SolveLimits& limits) {
  if (problem.budget) {
    return problem.offload != nullptr ? SolveOffloadWithin(problem, limits)
                                      : SolveWithinBudget(problem, limits);
  }
  CKPLAN_ASSIGN_OR_RETURN(Answer answer, problem.offload != nullptr
                                             ? SolveOnDevice(problem, limits)
                                             : SolveWithoutBudget(problem, limits));
  if (problem.offload != nullptr) {
    CKPLAN_ASSIGN_OR_RETURN(answer, SolveOffloadWithoutBudget(answer.schedule, problem, limits));
  }
  return WithinBudget{std::move(answer), {}};
}

Result<std::vector<CurvePoint>> TraceJointCurveByBest(const PlanProblem& problem,
                                                      const SolveLimits& limits) {
  if (problem.offload != nullptr) {
    CKPLAN_ASSIGN_OR_RETURN(const Answer without, SolveOnDevice(problem, limits));
    return TraceOffloadCurve(without.schedule, problem);
  }
  BestProblem shared(problem.step.joint(), problem.is_recomputed);
  BestOptions options;
  options.work = WorkOf(problem.request.effort);
  return CurveSearch(problem, &shared, options).Trace(limits);
}

Result<std::optional<Answer>> SolveJointByBestUntil(const PlanProblem& problem, Cost enough,
                                                    const SolveLimits& limits) {
  if (problem.offload != nullptr) return SolveOffloadUntil(problem, enough, limits);
  BestProblem shared(problem.step.joint(), problem.is_recomputed);
  BestOptions options;
  options.budget = problem.budget.value().count();
  options.enough = enough.count();
  CKPLAN_ASSIGN_OR_RETURN(const BestOutcome best,
                          SolveBestWithin(problem, &shared, options, limits));
  if (!best.runs) return std::optional<Answer>();
  return std::optional(AnswerFrom(problem, best));
}

}  // namespace ckplan
