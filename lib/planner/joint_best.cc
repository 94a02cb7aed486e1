#include "lib/planner/joint_best.h"

#include <fmt/format.h>

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lib/algorithms/best/best.h"
#include "lib/algorithms/best/least_peak.h"
#include "lib/algorithms/best/offload_best.h"
#include "lib/algorithms/best/trade_off.h"
#include "lib/base/check.h"
#include "lib/base/stop.h"
#include "lib/plan/added_time.h"
#include "lib/plan/constraints.h"
#include "lib/planner/best_planner.h"
#include "lib/planner/best_search.h"
#include "lib/planner/obedience.h"
#include "lib/planner/others.h"
#include "lib/planner/peak_budget.h"
#include "lib/planner/registry.h"
#include "lib/planner/solve.h"
#include "lib/schedule/simulate.h"

namespace ckplan {
namespace {

// Leaves only what holds for every plan: results must be made, at least once.
void ForgetProofs(const PlanProblem& problem, int64_t overhead, Answer* answer) {
  const Cost least = problem.step.LeastOverhead();
  answer->lower_bound = least;
  answer->certificate = Certificate{OverheadProof::kRunOnce,
                                    BoundScope::kAnyOrder,
                                    Cost(0),
                                    {Bytes(0), PeakProof::kWorkingSet, BoundScope::kAnyOrder},
                                    Bytes(0)};
  answer->is_optimal = Cost(overhead) == least;
  answer->guarantee = answer->is_optimal
                          ? "optimal: nothing runs twice"
                          : "heuristic: nothing is proven about plans that move values";
}

OthersWork OthersFor(SearchEffort effort) {
  return {WorkOfOthers(effort), /*wants_own_order=*/true,
          /*wants_slow=*/effort != SearchEffort::kQuick};
}

std::string GuaranteeOf(const PlanProblem& problem, BoundScope of, bool is_optimal, int64_t gap) {
  const std::string scope =
      fmt::format("{}{}", DescriptionOf(of), UnderConstraints(problem.request));
  if (is_optimal) return fmt::format("optimal among plans {}", scope);
  const auto once = static_cast<double>(problem.step.cost().count());
  return fmt::format("heuristic: no plan {} saves more than {:.2f} % of a step", scope,
                     once > 0 ? 100 * static_cast<double>(gap) / once : 0);
}

std::string GuaranteeOf(const PlanProblem& problem, const BestOutcome& outcome) {
  return GuaranteeOf(problem, outcome.scope, outcome.is_optimal,
                     outcome.overhead - outcome.lower_bound);
}

Answer OutcomeOf(const PlanProblem& problem, const BestOutcome& best) {
  Answer answer{ScheduleOfRuns(*best.runs), best.is_optimal, GuaranteeOf(problem, best)};
  answer.lower_bound = Cost(best.lower_bound);
  answer.certificate = Certificate{best.proof, best.scope, Cost(0), best.least_peak, Bytes(0)};
  // These are proofs about plans that leave every value on the device.
  if (problem.offload != nullptr) ForgetProofs(problem, best.overhead, &answer);
  return answer;
}

// Returns a plan of the least peak that is found.
Result<Answer> SolveBestForLeastPeak(const PlanProblem& problem, BestProblem* shared,
                                     const BestOptions& options, const SolveLimits& limits) {
  const JointGraph& graph = problem.step.joint();
  BestOptions probe = options;
  probe.work = kQuickWork;
  CKPLAN_ASSIGN_OR_RETURN(const LeastPeak least,
                          FindLeastPeak(shared, probe, KeepAllPeak(graph).count()));
  std::vector<OpId> runs = least.runs.value_or(problem.Obeying(OwnOrder(graph)));
  Simulator simulator(graph);
  const auto peak_of = [&](const std::vector<OpId>& plan) {
    return simulator.Run(plan).value().peak;
  };
  PlanProblem for_least = problem;
  for_least.budget.reset();
  for_least.wants_least_peak = true;
  if (least.bound.bytes < peak_of(runs)) {
    for (const Schedule& other :
         SchedulesOfOthers(for_least, OthersFor(problem.request.effort), limits)) {
      std::vector<OpId> found = RunsOf(other);
      if (peak_of(found) < peak_of(runs)) runs = std::move(found);
    }
  }
  BestOptions again = options;
  again.budget = peak_of(runs).count();
  again.starts = {runs};
  CKPLAN_ASSIGN_OR_RETURN(const BestOutcome best, SolveBest(shared, again));
  CKPLAN_CHECK(best.runs.has_value(), "best finds no worse than its starts");
  Answer outcome = OutcomeOf(problem, best);
  PeakBound& bound = outcome.certificate->peak;
  if (least.bound.bytes > bound.bytes && problem.offload == nullptr) bound = least.bound;
  const bool is_least = bound.bytes.count() == again.budget;
  outcome.is_optimal &= is_least;
  if (is_least)
    outcome.guarantee = LeastPeakProven(bound.scope, problem.request) + outcome.guarantee;
  return outcome;
}

bool IsEnough(const BestOptions& options, const BestOutcome& best) {
  return options.enough && best.runs && best.overhead <= *options.enough;
}

// Returns the best plan within the budget. It is no worse than those of the other algorithms.
Result<BestOutcome> SolveBestAt(SearchEffort effort, const PlanProblem& problem,
                                BestProblem* shared, const BestOptions& options,
                                const SolveLimits& limits) {
  CKPLAN_ASSIGN_OR_RETURN(BestOutcome best, SolveBest(shared, options));
  if (best.is_optimal || best.is_infeasible || limits.stop.stop_requested()) return best;
  if (IsEnough(options, best)) return best;
  Simulator simulator(problem.step);
  BestOptions again = options;
  const size_t known = again.starts.size();
  for (const Schedule& other : SchedulesOfOthers(problem, OthersFor(effort), limits)) {
    const int64_t overhead = simulator.Run(other).value().overhead.count();
    if (!best.runs || overhead < best.overhead) again.starts.push_back(RunsOf(other));
  }
  if (again.starts.size() == known) return best;
  // Programs and cuts would find the same plans again, but the annealing continues from a better
  // plan.
  again.work.programs = again.work.any_order = again.work.cut_trials = 0;
  again.before = &best;
  return SolveBest(shared, again);
}

// Whether a search with more effort can add nothing.
bool IsFinal(const BestOptions& options, const BestOutcome& best, const SolveLimits& limits) {
  const bool is_optimal_in_any_order = best.runs && best.overhead <= best.any_order_bound;
  return is_optimal_in_any_order || best.is_infeasible || limits.stop.stop_requested() ||
         IsEnough(options, best);
}

// Searches with less effort first, so that more effort never makes a plan worse. Goes on after
// `options.before`, if that is set: it is the outcome of as many efforts as are `done`.
Result<BestOutcome> SolveBestWithin(const PlanProblem& problem, BestProblem* shared,
                                    BestOptions options, const SolveLimits& limits,
                                    size_t done = 0) {
  BestOutcome best;
  for (const SearchEffort effort : std::span(kEfforts).subspan(done)) {
    options.work = WorkOf(effort);
    CKPLAN_ASSIGN_OR_RETURN(best, SolveBestAt(effort, problem, shared, options, limits));
    options.before = &best;
    if (IsFinal(options, best, limits) || effort == problem.request.effort) break;
  }
  return best;
}

OffloadEffort OffloadEffortOf(SearchEffort effort) {
  switch (effort) {
    case SearchEffort::kQuick:
      return kQuickOffloadEffort;
    case SearchEffort::kNormal:
      return kNormalOffloadEffort;
    case SearchEffort::kThorough:
      return kThoroughOffloadEffort;
  }
  return kNormalOffloadEffort;
}

OffloadLimits OffloadLimitsOf(const PlanProblem& problem) {
  const OffloadTerms& terms = *problem.offload;
  OffloadLimits limits;
  limits.link = terms.link;
  limits.budget = problem.budget->count();
  if (terms.host_budget) limits.host_budget = terms.host_budget->count();
  limits.may_move.assign(terms.may_move.begin(), terms.may_move.end());
  limits.rules = problem.rules;
  return limits;
}

// Returns the plans within the budget of the algorithms that move values by greedy rules.
std::vector<Schedule> SchedulesOfGreedyOffload(const PlanProblem& problem,
                                               const SolveLimits& limits) {
  std::vector<Schedule> schedules;
  for (const SolverInfo& info : OffloadSolvers()) {
    Result<Answer> answer = UnlessStopped([&] { return SolveBy(info, problem, limits); });
    if (answer.ok()) schedules.push_back(std::move(answer->schedule));
  }
  return schedules;
}

// Returns the best plan found within the budget that may move values to the host. It is no worse
// than `without`, a plan that does not. If none fits, it is the plan of least peak, or nothing.
Result<std::optional<Answer>> SolveWithin(const PlanProblem& problem, const BestOutcome& without,
                                          const SolveLimits& solve_limits) {
  const OffloadLimits limits = OffloadLimitsOf(problem);
  std::vector<Schedule> starts = SchedulesOfGreedyOffload(problem, solve_limits);
  if (without.runs) starts.push_back(ScheduleOfRuns(*without.runs));
  CKPLAN_ASSIGN_OR_RETURN(const OffloadOutcome found,
                          SolveWithOffload(problem.step.joint(), limits,
                                           OffloadEffortOf(problem.request.effort), starts));
  const std::optional<OffloadPlan>& plan = found.best ? found.best : found.nearest;
  if (!plan) return std::optional<Answer>();
  const int64_t gap = plan->overhead - found.lower_bound;
  Answer answer{plan->schedule, found.is_optimal,
                GuaranteeOf(problem, found.scope, found.is_optimal, gap)};
  answer.lower_bound = Cost(found.lower_bound);
  answer.certificate = Certificate{found.proof, found.scope, Cost(0), found.least_peak, Bytes(0)};
  if (found.is_infeasible) answer.note = WhatIsProven(found.least_peak, problem);
  return std::optional(std::move(answer));
}

// Returns the best plan found within the budget that may move values to the host; if none fits, the
// plan of least peak, or nothing. It is no worse than the plan that the same request gets without a
// link: quick search finds a plan without copies to start from, and further search for one is left
// out only if it is proven that none adds less than what was found.
Result<std::optional<Answer>> SolveMoving(const PlanProblem& problem, BestProblem* shared,
                                          BestOptions options, const SolveLimits& limits) {
  options.work = WorkOf(SearchEffort::kQuick);
  CKPLAN_ASSIGN_OR_RETURN(BestOutcome without,
                          SolveBestAt(SearchEffort::kQuick, problem, shared, options, limits));
  CKPLAN_ASSIGN_OR_RETURN(std::optional<Answer> moving, SolveWithin(problem, without, limits));
  const bool is_quick = problem.request.effort == SearchEffort::kQuick;
  if (is_quick || IsFinal(options, without, limits)) return moving;
  Simulator simulator(problem.step);
  std::optional<int64_t> added;
  if (moving) {
    const Simulation found = simulator.Run(moving->schedule).value();
    if (found.peak <= *problem.budget) added = found.overhead.count();
  }
  options.before = &without;
  if (added) {
    if (*added <= without.any_order_bound) return moving;
    BestOptions less = options;
    less.enough = *added - 1;
    CKPLAN_ASSIGN_OR_RETURN(const BestOutcome tried,
                            SolveBestWithin(problem, shared, less, limits, /*done=*/1));
    if (*added <= tried.any_order_bound) return moving;
  }
  CKPLAN_ASSIGN_OR_RETURN(BestOutcome best,
                          SolveBestWithin(problem, shared, options, limits, /*done=*/1));
  if (!best.runs || (added && best.overhead >= *added)) return moving;
  return SolveWithin(problem, best, limits);
}

// Finds plans of little peak without a budget, and the curve that they are on.
class CurveSearch {
 public:
  CurveSearch(const PlanProblem& problem, BestProblem* shared, const BestOptions& options)
      : problem_(problem),
        shared_(shared),
        options_(options),
        most_added_(AllowedAddition(problem)),
        trade_off_(shared, AtAGlance(options), problem.Obeying(OwnOrder(problem.step.joint()))) {}

  // Returns the plan of the least peak found that adds no more than plans without a budget may add,
  // with little time for that peak.
  Result<Answer> Solve(const SolveLimits& limits) {
    try {
      CKPLAN_RETURN_IF_ERROR(SearchShownPoints(most_added_, problem_.step.cost(), &trade_off_));
    } catch (const Stopped&) {
      // The best plan that was found by then is returned.
    }
    CKPLAN_ASSIGN_OR_RETURN(Answer outcome,
                            SolveFrom(trade_off_.LeastWithin(most_added_.count()), limits));
    outcome.curve = ShownPoints(PointsWith(outcome), problem_.step.cost());
    return outcome;
  }

  // Returns the plan that the balance prefers to all that are found by the searches of Trace and
  // for the least peak, and beside the best of these.
  Result<Answer> SolveForBalance(const Balance& balance, const SolveLimits& limits) {
    CKPLAN_ASSIGN_OR_RETURN(Answer best, Solve(limits));
    const Result<Answer> least = UnlessStopped([&]() -> Result<Answer> {
      CKPLAN_RETURN_IF_ERROR(trade_off_.SearchEvenly(kCurveBudgets));
      CKPLAN_RETURN_IF_ERROR(trade_off_.SearchForBalance(balance));
      return SolveBestForLeastPeak(problem_, shared_, options_, limits);
    });
    // After a stop, the best plan that was found by then is returned.
    if (!least.ok() && !limits.stop.stop_requested()) return least;
    if (least.ok() && balance.IsBetter(PointOf(*least), PointOf(best))) best = *least;
    const CurvePoint found = balance.BestOf(trade_off_.Points());
    if (balance.IsBetter(found, PointOf(best))) {
      CKPLAN_ASSIGN_OR_RETURN(best, SolveFrom(trade_off_.At(found), limits));
    }
    best.curve.clear();
    MarkBalanced(&best);
    return best;
  }

  // Returns all points that are found: those of Solve, and those of a range of budgets.
  Result<std::vector<CurvePoint>> Trace(const SolveLimits& limits) {
    CKPLAN_ASSIGN_OR_RETURN(const Answer outcome, Solve(limits));
    CKPLAN_RETURN_IF_ERROR(trade_off_.SearchEvenly(kCurveBudgets));
    return PointsWith(outcome);
  }

 private:
  static BestOptions AtAGlance(BestOptions options) {
    options.work = kGlanceWork;
    return options;
  }

  // Returns a plan of no higher peak that adds no more, and that may have taken longer to find.
  Result<Answer> SolveFrom(const PricedRuns& known, const SolveLimits& limits) {
    BestOptions again = options_;
    again.budget = known.peak;
    again.starts = {known.runs};
    PlanProblem within = problem_;
    within.budget = Bytes(again.budget);
    CKPLAN_ASSIGN_OR_RETURN(const BestOutcome best,
                            SolveBestWithin(within, shared_, again, limits));
    CKPLAN_CHECK(best.runs.has_value(), "best finds no worse than its starts");
    return OutcomeOf(problem_, best);
  }

  CurvePoint PointOf(const Answer& outcome) const {
    const Simulation own = Simulator(problem_.step).Run(outcome.schedule).value();
    return {own.peak, own.overhead};
  }

  std::vector<CurvePoint> PointsWith(const Answer& outcome) const {
    std::vector<CurvePoint> points = trade_off_.Points();
    points.push_back(PointOf(outcome));
    return FrontOf(std::move(points));
  }

  const PlanProblem& problem_;
  BestProblem* const shared_;
  const BestOptions options_;
  const Cost most_added_;
  TradeOff trade_off_;
};

}  // namespace

Result<Answer> SolveJointByBest(const PlanProblem& problem, const SolveLimits& limits) {
  BestProblem shared(problem.step.joint(), problem.is_recomputed);
  BestOptions options;
  options.work = WorkOf(problem.request.effort);
  if (problem.wants_least_peak) return SolveBestForLeastPeak(problem, &shared, options, limits);
  if (problem.balance) {
    PlanProblem of_curve = problem;
    of_curve.balance.reset();
    return CurveSearch(of_curve, &shared, options).SolveForBalance(*problem.balance, limits);
  }
  if (!problem.budget) return CurveSearch(problem, &shared, options).Solve(limits);
  options.budget = problem.budget->count();
  if (problem.offload != nullptr) {
    CKPLAN_ASSIGN_OR_RETURN(std::optional<Answer> moving,
                            SolveMoving(problem, &shared, options, limits));
    if (moving) return *std::move(moving);
  }
  CKPLAN_ASSIGN_OR_RETURN(const BestOutcome best,
                          SolveBestWithin(problem, &shared, options, limits));
  if (best.runs) return OutcomeOf(problem, best);
  options.work = kQuickWork;
  CKPLAN_ASSIGN_OR_RETURN(Answer least, SolveBestForLeastPeak(problem, &shared, options, limits));
  if (problem.offload != nullptr) return least;
  const bool is_proven = best.least_peak.bytes > *problem.budget;
  least.note = WhatIsProven(is_proven ? best.least_peak : least.certificate->peak, problem);
  return least;
}

Result<std::vector<CurvePoint>> TraceJointCurveByBest(const PlanProblem& problem,
                                                      const SolveLimits& limits) {
  BestProblem shared(problem.step.joint(), problem.is_recomputed);
  BestOptions options;
  options.work = WorkOf(problem.request.effort);
  return CurveSearch(problem, &shared, options).Trace(limits);
}

Result<std::optional<Answer>> SolveJointByBestUntil(const PlanProblem& problem, Cost enough,
                                                    const SolveLimits& limits) {
  BestProblem shared(problem.step.joint(), problem.is_recomputed);
  BestOptions options;
  options.budget = problem.budget.value().count();
  options.enough = enough.count();
  CKPLAN_ASSIGN_OR_RETURN(const BestOutcome best,
                          SolveBestWithin(problem, &shared, options, limits));
  if (!best.runs) return std::optional<Answer>();
  return std::optional(OutcomeOf(problem, best));
}

}  // namespace ckplan
