#include "lib/planner/joint_best.h"

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "lib/algorithms/best/best.h"
#include "lib/algorithms/best/least_peak.h"
#include "lib/algorithms/best/trade_off.h"
#include "lib/base/check.h"
#include "lib/base/stop.h"
#include "lib/base/work_limit.h"
#include "lib/joint/simulate_runs.h"
#include "lib/plan/added_time.h"
#include "lib/plan/constraints.h"
#include "lib/planner/best_planner.h"
#include "lib/planner/best_search.h"
#include "lib/planner/joint_runs.h"
#include "lib/planner/obedience.h"
#include "lib/planner/other_plans.h"
#include "lib/planner/registry.h"
#include "lib/planner/strategy_runs.h"

namespace ckplan {
namespace {

// What `best` can start from: the plans of the algorithms that it is never worse than, within a
// limit of work (other_plans.h), unless a stop comes first. Those that answer at once come first.
std::vector<std::vector<OpId>> PlansOfOthers(const JointProblem& problem, SearchEffort effort,
                                             const SolveLimits& limits) {
  const WorkLimit limit(limits.stop, WorkOfOthers(effort));
  SolveLimits own_limits = limits;
  own_limits.stop = limit.token();
  std::vector<std::vector<OpId>> plans;
  const auto add = [&](const SolverInfo& info) {
    Result<JointOutcome> outcome = UnlessStopped([&] {
      const StopScope scope(own_limits.stop);
      return info.prepare_runs != nullptr ? SolveByRuns(problem, own_limits, info.prepare_runs)
                                          : SolveByStrategies(info, problem, own_limits);
    });
    if (outcome.ok()) plans.push_back(std::move(outcome->runs));
  };
  for (const bool is_slow : {false, true}) {
    if (is_slow && effort == SearchEffort::kQuick) break;
    for (const SolverInfo& info : AllSolvers()) {
      const bool can_plan = DecidesOnRuns(info) || problem.forward != nullptr;
      const bool is_start = info.guarantee == Guarantee::kBaseline;
      if (IsSlow(info) == is_slow && can_plan && !is_start) add(info);
    }
  }
  return plans;
}

std::string GuaranteeOf(const JointProblem& problem, const BestOutcome& outcome) {
  const std::string scope =
      fmt::format("{}{}", DescriptionOf(outcome.scope), UnderConstraints(problem.request));
  if (outcome.is_optimal) return fmt::format("optimal among plans {}", scope);
  const auto once = static_cast<double>(problem.graph.cost().count());
  const auto gap = static_cast<double>(outcome.overhead - outcome.lower_bound);
  return fmt::format("heuristic: no plan {} saves more than {:.2f} % of a step", scope,
                     once > 0 ? 100 * gap / once : 0);
}

JointOutcome OutcomeOf(const JointProblem& problem, const BestOutcome& best) {
  return {*best.runs, best.is_optimal, GuaranteeOf(problem, best), Cost(best.lower_bound),
          Certificate{best.proof, best.scope, Cost(0), best.least_peak, Bytes(0)}};
}

// A plan of the least peak that is found.
Result<JointOutcome> SolveBestForLeastPeak(const JointProblem& problem, BestProblem* shared,
                                           const BestOptions& options, const SolveLimits& limits) {
  const JointGraph& graph = problem.graph;
  BestOptions probe = options;
  probe.work = kQuickWork;
  CKPLAN_ASSIGN_OR_RETURN(const LeastPeak least,
                          FindLeastPeak(shared, probe, OwnOrderPeak(graph).count()));
  std::vector<OpId> runs = least.runs.value_or(problem.Obeying(OwnOrder(graph)));
  RunSimulator simulator(graph);
  const auto peak_of = [&](const std::vector<OpId>& plan) {
    return simulator.Run(plan).value().peak;
  };
  JointProblem for_least = problem;
  for_least.budget.reset();
  for_least.wants_least_peak = true;
  if (least.bound.bytes < peak_of(runs)) {
    for (std::vector<OpId>& other : PlansOfOthers(for_least, problem.request.effort, limits)) {
      if (peak_of(other) < peak_of(runs)) runs = std::move(other);
    }
  }
  BestOptions again = options;
  again.budget = peak_of(runs).count();
  again.starts = {runs};
  CKPLAN_ASSIGN_OR_RETURN(const BestOutcome best, SolveBest(shared, again));
  CKPLAN_CHECK(best.runs.has_value(), "best finds no worse than its starts");
  JointOutcome outcome = OutcomeOf(problem, best);
  PeakBound& bound = outcome.certificate->peak;
  if (least.bound.bytes > bound.bytes) bound = least.bound;
  const bool is_least = bound.bytes.count() == again.budget;
  outcome.is_optimal &= is_least;
  if (is_least)
    outcome.guarantee = LeastPeakProven(bound.scope, problem.request) + outcome.guarantee;
  return outcome;
}

bool IsEnough(const BestOptions& options, const BestOutcome& best) {
  return options.enough && best.runs && best.overhead <= *options.enough;
}

// The best plan within the budget, no worse than those of the other algorithms.
Result<BestOutcome> SolveBestAt(SearchEffort effort, const JointProblem& problem,
                                BestProblem* shared, const BestOptions& options,
                                const SolveLimits& limits) {
  CKPLAN_ASSIGN_OR_RETURN(BestOutcome best, SolveBest(shared, options));
  if (best.is_optimal || best.is_infeasible || limits.stop.stop_requested()) return best;
  if (IsEnough(options, best)) return best;
  RunSimulator simulator(problem.graph);
  BestOptions again = options;
  const size_t known = again.starts.size();
  for (std::vector<OpId>& other : PlansOfOthers(problem, effort, limits)) {
    const RunSimulation simulation = simulator.Run(other).value();
    const int64_t overhead = (simulation.cost - problem.graph.cost()).count();
    const bool is_better = !best.runs || overhead < best.overhead;
    if (is_better && simulation.peak <= *problem.budget) again.starts.push_back(std::move(other));
  }
  if (again.starts.size() == known) return best;
  // Programs and cuts find the same again; the annealing goes on from a better plan.
  again.work.programs = again.work.any_order = again.work.cut_trials = 0;
  again.before = &best;
  return SolveBest(shared, again);
}

// The same, no worse than with less effort.
Result<BestOutcome> SolveBestWithin(const JointProblem& problem, BestProblem* shared,
                                    BestOptions options, const SolveLimits& limits) {
  BestOutcome best;
  for (const SearchEffort effort : kEfforts) {
    options.work = WorkOf(effort);
    CKPLAN_ASSIGN_OR_RETURN(best, SolveBestAt(effort, problem, shared, options, limits));
    options.before = &best;
    const bool is_optimal_in_any_order = best.runs && best.overhead <= best.any_order_bound;
    const bool is_final = is_optimal_in_any_order || best.is_infeasible ||
                          limits.stop.stop_requested() || IsEnough(options, best);
    if (is_final || effort == problem.request.effort) break;
  }
  return best;
}

// Plans of little peak without a budget, and the curve that they are on.
class CurveSearch {
 public:
  CurveSearch(const JointProblem& problem, BestProblem* shared, const BestOptions& options)
      : problem_(problem),
        shared_(shared),
        options_(options),
        most_added_(MostAdded(kAddedPercentWithoutBudget, problem.graph.cost())),
        trade_off_(shared, AtAGlance(options), problem.Obeying(OwnOrder(problem.graph))) {}

  // The plan of the least peak that is found which adds no more than those for no budget may, and
  // of little time for it.
  Result<JointOutcome> Solve(const SolveLimits& limits) {
    try {
      CKPLAN_RETURN_IF_ERROR(SearchShownPoints(most_added_, problem_.graph.cost(), &trade_off_));
    } catch (const Stopped&) {
      // The best of what was found by then is returned.
    }
    const PricedRuns& chosen = trade_off_.LeastWithin(most_added_.count());
    BestOptions again = options_;
    again.budget = chosen.peak;
    again.starts = {chosen.runs};
    JointProblem within = problem_;
    within.budget = Bytes(again.budget);
    CKPLAN_ASSIGN_OR_RETURN(const BestOutcome best,
                            SolveBestWithin(within, shared_, again, limits));
    CKPLAN_CHECK(best.runs.has_value(), "best finds no worse than its starts");
    JointOutcome outcome = OutcomeOf(problem_, best);
    outcome.curve = ShownPoints(PointsWith(outcome), problem_.graph.cost());
    return outcome;
  }

  // All points that are found, those of Solve and of a range of budgets.
  Result<std::vector<CurvePoint>> Trace(const SolveLimits& limits) {
    CKPLAN_ASSIGN_OR_RETURN(const JointOutcome outcome, Solve(limits));
    CKPLAN_RETURN_IF_ERROR(trade_off_.SearchEvenly(kCurveBudgets));
    return PointsWith(outcome);
  }

 private:
  static BestOptions AtAGlance(BestOptions options) {
    options.work = kGlanceWork;
    return options;
  }

  std::vector<CurvePoint> PointsWith(const JointOutcome& outcome) const {
    std::vector<CurvePoint> points = trade_off_.Points();
    const RunSimulation own = RunSimulator(problem_.graph).Run(outcome.runs).value();
    points.push_back({own.peak, own.cost - problem_.graph.cost()});
    return FrontOf(std::move(points));
  }

  const JointProblem& problem_;
  BestProblem* const shared_;
  const BestOptions options_;
  const Cost most_added_;
  TradeOff trade_off_;
};

}  // namespace

Result<JointOutcome> SolveByBest(const JointProblem& problem, const SolveLimits& limits) {
  BestProblem shared(problem.graph, problem.is_recomputed);
  BestOptions options;
  options.work = WorkOf(problem.request.effort);
  if (problem.wants_least_peak) return SolveBestForLeastPeak(problem, &shared, options, limits);
  if (!problem.budget) return CurveSearch(problem, &shared, options).Solve(limits);
  options.budget = problem.budget->count();
  CKPLAN_ASSIGN_OR_RETURN(const BestOutcome best,
                          SolveBestWithin(problem, &shared, options, limits));
  if (best.runs) return OutcomeOf(problem, best);
  options.work = kQuickWork;
  CKPLAN_ASSIGN_OR_RETURN(JointOutcome least,
                          SolveBestForLeastPeak(problem, &shared, options, limits));
  const bool is_proven = best.least_peak.bytes > *problem.budget;
  least.note = WhatIsProven(is_proven ? best.least_peak : least.certificate->peak, *problem.budget,
                            ConstantsInBudget(problem.graph, problem.request), problem.request);
  return least;
}

Result<std::vector<CurvePoint>> TraceCurveByBest(const JointProblem& problem,
                                                 const SolveLimits& limits) {
  BestProblem shared(problem.graph, problem.is_recomputed);
  BestOptions options;
  options.work = WorkOf(problem.request.effort);
  return CurveSearch(problem, &shared, options).Trace(limits);
}

Result<std::optional<JointOutcome>> SolveByBestUntil(const JointProblem& problem, Cost enough,
                                                     const SolveLimits& limits) {
  BestProblem shared(problem.graph, problem.is_recomputed);
  BestOptions options;
  options.budget = problem.budget.value().count();
  options.enough = enough.count();
  CKPLAN_ASSIGN_OR_RETURN(const BestOutcome best,
                          SolveBestWithin(problem, &shared, options, limits));
  if (!best.runs) return std::optional<JointOutcome>();
  return std::optional(OutcomeOf(problem, best));
}

}  // namespace ckplan
