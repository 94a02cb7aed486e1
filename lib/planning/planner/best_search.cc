#include "lib/planning/planner/best_search.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <set>
#include <utility>

#include "lib/base/stop.h"
#include "lib/planning/algorithms/best/certificates.h"
#include "lib/planning/algorithms/best/trade_off.h"
#include "lib/planning/plan/added_time.h"
#include "lib/planning/planner/peak_budget.h"
#include "lib/planning/planner/warm_starts.h"
#include "lib/problem/schedule/schedule.h"
#include "lib/problem/schedule/simulate.h"

namespace ckplan {
namespace {

// A plan is near its bound if the gap is at most this fraction of a step.
constexpr int64_t kNearParts = 50;

// Within the lowest peak divided by this, more effort may find a plan with a lower one.
constexpr int64_t kNearLeastParts = 64;
// Up to this many operations, all searches take milliseconds.
constexpr int32_t kFewOpsForLeast = 64;

Bytes PeakInOrder(const TensorGraph& graph, const std::vector<NodeId>& order) {
  return Simulator(graph).Run(KeepAllSchedule(order)).value().peak;
}

// `order` is the scope of proofs about the expansion's order: the graph's own order, or the plan's.
BestSolution SolutionFrom(const BestOutcome& outcome, const Expansion& expansion,
                          BoundScope order) {
  const auto scope_of = [&](BoundScope scope) {
    return scope == BoundScope::kOwnOrder ? order : scope;
  };
  BestSolution solution{std::nullopt,       outcome.overhead,        outcome.lower_bound,
                        outcome.is_optimal, outcome.is_infeasible,   outcome.is_settled,
                        outcome.proof,      scope_of(outcome.scope), outcome.least_peak};
  solution.least_peak.scope = scope_of(outcome.least_peak.scope);
  if (outcome.runs) solution.schedule = ScheduleOf(expansion, *outcome.runs);
  return solution;
}

}  // namespace

Result<Done> TraceShownPoints(Cost most_added, Cost step, const CurveWork& work,
                              BestProblem* problem) {
  TradeOffCurve* const curve = problem->curve();
  curve->Trace(work);
  std::vector<int64_t> limits = {most_added.count()};
  for (const double percent : kShownAddedPercents) {
    limits.push_back(MostAdded(percent, step).count());
  }
  limits.push_back(TradeOff::kAnyTime);
  for (const int64_t limit : limits) {
    curve->ReadWithin(limit, work);
    CKPLAN_RETURN_IF_ERROR(LowerPeakWithin(limit, problem));
  }
  return Done{};
}

void AddMinPeaks(const TradeOffCurve& curve, std::vector<CurvePoint>* points) {
  for (CurvePoint& point : *points) {
    const Bytes least(curve.MinPeakWithin(point.overhead.count()));
    if (least <= point.peak) point.least_peak = least;
  }
}

void RefineBetweenPoints(const CurveWork& work, TradeOffCurve* curve) {
  constexpr int kMaxReadings = 64;
  constexpr size_t kManyPoints = 16;
  Bytes at = Bytes(std::numeric_limits<int64_t>::max());
  for (int reading = 0; reading < kMaxReadings; ++reading) {
    const std::vector<CurvePoint> known = curve->Points();
    if (known.size() >= kManyPoints) return;
    // The point with the largest peak below the last one tried.
    const auto above = std::find_if(known.begin(), known.end(),
                                    [&](const CurvePoint& point) { return point.peak >= at; });
    if (above == known.begin()) return;
    at = std::prev(above)->peak;
    curve->Read(at.count() - 1, work);
  }
}

void RefineForBalance(const Balance& balance, const CurveWork& work, TradeOffCurve* curve) {
  constexpr int kRounds = 4;
  for (int i = 0; i < kRounds; ++i) {
    const std::vector<CurvePoint> known = curve->Points();
    for (const Bytes budget : balance.BudgetsBesideBest(known)) curve->Read(budget.count(), work);
    if (curve->Points() == known) break;
  }
}

BestWork WorkOf(SearchEffort effort) {
  switch (effort) {
    case SearchEffort::kQuick:
      return kQuickWork;
    case SearchEffort::kNormal:
      return kNormalWork;
    case SearchEffort::kThorough:
      return kThoroughWork;
  }
  return kNormalWork;
}

OtherMicroBatches OthersOf(const TensorGraph& graph, const Expansion& expansion) {
  const auto loss = std::find_if(expansion.step_of.begin(), expansion.step_of.end(),
                                 [](const Step& step) { return step.kind == StepKind::kLoss; });
  return {graph.micro_batches() - 1, static_cast<int32_t>(loss - expansion.step_of.begin())};
}

BestSearch::Order BestSearch::OwnForwardOrder(const TensorGraph& graph) {
  Order order;
  for (const NodeId id : graph.nodes().ids()) order.push_back(id);
  return order;
}

BestSearch::BestSearch(const TensorGraph& graph, const PlanRequest& request,
                       const SolveLimits& limits, std::optional<Cost> enough)
    : graph_(graph),
      request_(request),
      limits_(limits),
      enough_(enough),
      constraints_(HasConstraints(request) ? std::optional(ConstraintsOf(graph, request).value())
                                           : std::nullopt),
      own_order_(OwnForwardOrder(graph)),
      expansion_(ApplyConstraints(ExpandTensorGraph(graph))),
      own_problem_(expansion_.graph, FindRecomputed(expansion_), OthersOf(graph, expansion_)) {
  if (request.order != StepOrder::kFree) return;
  any_order_ = ApplyConstraints(ExpandForAnyOrder(graph));
  any_order_problem_.emplace(any_order_->graph, FindRecomputed(*any_order_),
                             OthersOf(graph, *any_order_));
}

Expansion BestSearch::ApplyConstraints(Expansion expansion) const {
  if (!constraints_ || !constraints_->has_once()) return expansion;
  return ForbidReruns(expansion, constraints_->runs_once);
}

// Returns the operations that must be recomputed, or an empty list.
IdVector<OpId, bool> BestSearch::FindRecomputed(const Expansion& expansion) const {
  if (!constraints_ || !constraints_->has_recomputed()) return {};
  IdVector<OpId, bool> recomputed(expansion.step_of.size());
  for (const OpId op : recomputed.ids()) {
    const Step& step = expansion.step_of[static_cast<size_t>(op.index())];
    recomputed[op] = step.kind == StepKind::kForward && constraints_->is_recomputed[step.node()];
  }
  return recomputed;
}

BestSolution BestSearch::KeepAllSolution() const {
  const Schedule all = KeepAllSchedule(own_order_);
  if (!constraints_) return {all, 0, 0, true};
  return SolutionOf(ScheduleRules(graph_, *constraints_).ConstrainedTo(all));
}

Result<BestSolution> BestSearch::Solve(Bytes budget, const std::optional<Schedule>& known) {
  Progress progress;
  if (known) progress.best = SolutionOf(*known);
  return SolveFrom(std::move(progress), budget, nullptr);
}

Result<BestSolution> BestSearch::SolveUnlessFarBelow(
    Bytes budget, const std::function<Result<BestSolution>()>& find_least) {
  return SolveFrom(Progress(), budget, find_least);
}

Result<BestSolution> BestSearch::SolveFrom(
    Progress progress, Bytes budget, const std::function<Result<BestSolution>()>& find_least) {
  for (const SearchEffort effort : kEfforts) {
    CKPLAN_RETURN_IF_ERROR(SolveAt(effort, budget, &progress));
    if (effort == request_.effort || IsFinal(progress)) break;
    if (!find_least || progress.best.schedule || request_.effort != SearchEffort::kNormal) continue;
    CKPLAN_ASSIGN_OR_RETURN(const BestSolution least, find_least());
    if (PeakOf(least) <= budget) progress.best = SolutionOf(*least.schedule);
    if (IsFarBelow(budget, least)) break;
  }
  return std::move(progress.best);
}

bool BestSearch::IsFarBelow(Bytes budget, const BestSolution& least) const {
  const int64_t peak = PeakOf(least).count();
  const bool is_proven = Bytes(peak) == least.least_peak.bytes;
  const bool is_far = is_proven || budget.count() < peak - peak / kNearLeastParts;
  return is_far && budget.count() < peak && own_problem_.flat().op_count > kFewOpsForLeast;
}

Result<BestSolution> BestSearch::SolveByCurve(Bytes budget) {
  BestWork work = kQuickWork;
  work.programs = work.moves = 0;
  work.curve = kBriefCurve;
  CKPLAN_ASSIGN_OR_RETURN(const BestOutcome outcome,
                          SolveExpansion(expansion_, &own_problem_, budget, work, {}, nullptr));
  return SolutionFrom(outcome, expansion_, BoundScope::kOwnOrder);
}

std::optional<Bytes> BestSearch::PeakThatFits(
    Bytes most, const std::function<bool(const Schedule& schedule, Bytes peak)>& fits) {
  constexpr int64_t kReadings = 4;
  const int64_t enough = enough_->count();
  curve().ReadWithin(enough, kBriefCurve);
  const int64_t least = curve().LeastWithin(enough).peak;
  std::set<int64_t> tried;
  for (int64_t reading = 0; reading < kReadings; ++reading) {
    if (reading > 0)
      curve().Read(least + (most.count() - least) / kReadings * reading, kBriefCurve);
    for (const TradeOffCurve::PlanOnCurve& plan : curve().plans()) {
      if (plan.overhead > enough || plan.peak > most.count() || !tried.insert(plan.peak).second)
        continue;
      if (fits(ScheduleOf(expansion_, plan.runs), Bytes(plan.peak))) return Bytes(plan.peak);
    }
  }
  return std::nullopt;
}

// Tells whether more effort can neither find nor prove anything new.
bool BestSearch::IsFinal(const Progress& progress) const {
  const BestSolution& best = progress.best;
  if (IsEnough(best)) return true;
  const bool is_optimal_in_any_order = best.is_optimal && best.scope == BoundScope::kAnyOrder;
  // If the plan in the graph's own order is optimal, other algorithms' orders only get quick
  // effort, which is done.
  return is_optimal_in_any_order || (progress.own->is_optimal && !any_order_);
}

Result<Done> BestSearch::SolveAt(SearchEffort effort, Bytes budget, Progress* progress) {
  BestSolution& best = progress->best;
  const bool is_mirrored_done = progress->own && progress->own->is_optimal;
  if (!is_mirrored_done) {
    CKPLAN_ASSIGN_OR_RETURN(BestSolution found, SolveMirrored(effort, budget, progress));
    if (!best.IsBetterThan(found)) best = std::move(found);
  }
  if (!any_order_ || (best.schedule && best.overhead == 0) || IsEnough(best)) return Done{};
  KeepInCaseOfStop(best);
  return SolveInAnyOrder(effort, budget, progress);
}

Result<BestSolution> BestSearch::SolveForMinPeak() {
  CKPLAN_ASSIGN_OR_RETURN(BestSolution least, FindMin());
  KeepInCaseOfStop(least);
  CKPLAN_ASSIGN_OR_RETURN(BestSolution again, Solve(PeakOf(least), least.schedule));
  // Another forward order adds gradients in another order, so bounds for the graph's own order
  // don't apply.
  const bool is_for_all = any_order_ || IsInOwnOrder(*again.schedule);
  if (is_for_all && least.least_peak.bytes > again.least_peak.bytes) {
    again.least_peak = least.least_peak;
  }
  return again;
}

Result<BestSolution> BestSearch::FindMin() {
  if (least_) return *least_;
  BestSolution least = MinPeakWarmStart();
  KeepInCaseOfStop(least);
  CKPLAN_ASSIGN_OR_RETURN(const LeastPeak lower, FindMinInOwnOrder(PeakOf(least)));
  if (lower.runs) least = SolutionOf(ScheduleOf(expansion_, *lower.runs));
  least.least_peak = lower.bound;
  if (any_order_) {
    CKPLAN_ASSIGN_OR_RETURN(least, FindMinInAnyOrder(least));
  }
  return least_.emplace(std::move(least));
}

// If no plan reaches the lower bound, searches below the curve that a request without a budget
// shows, so that this names no larger peak than that.
Result<LeastPeak> BestSearch::FindMinInOwnOrder(Bytes reached) {
  BestOptions options;
  options.work = kQuickWork;
  options.is_order_free = false;
  options.enough = std::numeric_limits<int64_t>::max() / 2;
  // What a search at the bound adds to the curve must not change how it is traced.
  BestProblem apart(expansion_.graph, FindRecomputed(expansion_), OthersOf(graph_, expansion_));
  const Bytes bound(apart.certificates().least_peak_any_plan);
  if (reached <= bound) return LeastPeak{std::nullopt, {bound}};
  options.budget = bound.count();
  CKPLAN_ASSIGN_OR_RETURN(BestOutcome at_bound, SolveBest(&apart, options));
  if (at_bound.runs) return LeastPeak{std::move(at_bound.runs), {bound}};
  CKPLAN_RETURN_IF_ERROR(TraceOnce(MostAdded(kAddedPercentWithoutBudget, StepCost())));
  CKPLAN_ASSIGN_OR_RETURN(LeastPeak lower, FindMinPeak(&own_problem_, std::move(options),
                                                       reached.count(), bound.count()));
  if (at_bound.least_peak.bytes > lower.bound.bytes) lower.bound = at_bound.least_peak;
  return lower;
}

Result<Done> BestSearch::TraceOnce(Cost most_added) {
  if (std::exchange(has_curve_, true)) return Done{};
  curve().Offer(RunsOf(expansion_, *KeepAllSolution().schedule));
  return TraceShownPoints(most_added, StepCost(), WorkOf(request_.effort).curve, &own_problem_);
}

Result<BestSolution> BestSearch::SolveWithinAddedTime(Cost most_added) {
  const BestSolution all = KeepAllSolution();
  KeepInCaseOfStop(all);
  try {
    CKPLAN_RETURN_IF_ERROR(TraceOnce(most_added));
  } catch (const Stopped&) {
    const StopsSuspended whole;
    KeepInCaseOfStop(LeastWithin(most_added));
    throw;
  }
  const BestSolution chosen = LeastWithin(most_added);
  KeepInCaseOfStop(chosen);
  CKPLAN_ASSIGN_OR_RETURN(BestSolution solution, Solve(PeakOf(chosen), chosen.schedule));
  // The search may have found a better plan on the way; the curve would show it.
  const TradeOffCurve::PlanOnCurve& least = curve().LeastWithin(most_added.count());
  const int64_t peak = PeakOf(solution).count();
  const bool is_less = std::pair(least.peak, least.overhead) < std::pair(peak, solution.overhead);
  if (is_less && least.overhead <= std::max(most_added.count(), solution.overhead)) {
    solution.schedule = ScheduleOf(expansion_, least.runs);
    solution.overhead = least.overhead;
    solution.is_optimal = solution.overhead == solution.lower_bound;
  }
  return solution;
}

BestSolution BestSearch::LeastWithin(Cost most_added) {
  return SolutionOf(ScheduleOf(expansion_, curve().LeastWithin(most_added.count()).runs));
}

Result<BestSolution> BestSearch::SolveForBalance(const Balance& balance) {
  balance_ = balance;
  const Cost most_added = MostAdded(kAddedPercentWithoutBudget, StepCost());
  CKPLAN_ASSIGN_OR_RETURN(BestSolution best, SolveWithinAddedTime(most_added));
  try {
    RefineForBalance(balance, WorkOf(request_.effort).curve, &curve());
  } catch (const Stopped&) {
    const StopsSuspended whole;
    KeepInCaseOfStop(BestBalancedFound());
    throw;
  }
  KeepInCaseOfStop(BestBalancedFound());
  CKPLAN_ASSIGN_OR_RETURN(BestSolution least, SolveForMinPeak());
  if (IsBetterBalanced(least, best)) best = std::move(least);
  const BestSolution found = BestBalancedFound();
  if (!IsBetterBalanced(found, best)) return best;
  return Solve(PeakOf(found), found.schedule);
}

BestSolution BestSearch::BestBalancedFound() {
  const CurvePoint best = balance_->BestOf(curve().Points());
  return SolutionOf(ScheduleOf(expansion_, curve().BestWithin(best.peak.count())->runs));
}

bool BestSearch::IsBetterBalanced(const BestSolution& a, const BestSolution& b) const {
  return balance_->IsBetter(PointOf(a), PointOf(b));
}

std::vector<CurvePoint> BestSearch::CurveToShow(const BestSolution& chosen) {
  if (!has_curve_) return {};
  std::vector<CurvePoint> points = curve().Points();
  points.push_back(PointOf(chosen));
  points = ShownPoints(FrontOf(std::move(points)), StepCost());
  AddMinPeaks(curve(), &points);
  return points;
}

Result<std::vector<CurvePoint>> BestSearch::TraceCurve(Cost most_added) {
  CKPLAN_ASSIGN_OR_RETURN(const BestSolution chosen, SolveWithinAddedTime(most_added));
  if (own_problem_.flat().op_count <= kFewProgramOps) {
    RefineBetweenPoints(WorkOf(request_.effort).curve, &curve());
  }
  std::vector<CurvePoint> points = curve().Points();
  points.push_back(PointOf(chosen));
  if (own_problem_.flat().op_count <= kFewProgramOps) {
    // The search for the lowest peak also starts from other algorithms' plans.
    CKPLAN_ASSIGN_OR_RETURN(const BestSolution least, SolveForMinPeak());
    points.push_back(PointOf(least));
  }
  return FrontOf(std::move(points));
}

// Returns the best plan in the graph's own order and, unless none can be better, in the orders of
// other algorithms' plans. Starts from those plans and from the best plan so far.
Result<BestSolution> BestSearch::SolveMirrored(SearchEffort effort, Bytes budget,
                                               Progress* progress) {
  std::optional<Schedule> known = progress->best.schedule;
  if (known && !IsMirrored(*known)) known.reset();
  std::vector<Schedule> starts;
  if (known && IsInOwnOrder(*known)) starts.push_back(*known);
  CKPLAN_ASSIGN_OR_RETURN(BestSolution best,
                          SolveOwnOrder(budget, WorkOf(effort), starts, &progress->own));
  const auto keep = [&] {
    KeepInCaseOfStop(progress->best.IsBetterThan(best) ? progress->best : best);
  };
  keep();
  if ((best.is_optimal && best.overhead == 0) || IsEnough(best)) return best;
  const SearchEffort effort_for_other_orders = EffortForOtherOrders(best, effort);
  for (const OrderedProblem& problem :
       FindOtherOrders(budget, best, known, effort_for_other_orders)) {
    CKPLAN_ASSIGN_OR_RETURN(BestSolution other,
                            SolveInOrder(budget, problem, WorkOf(effort_for_other_orders)));
    if (other.IsBetterThan(best)) best = std::move(other);
    keep();
    if (IsEnough(best)) break;
  }
  return best;
}

// Other algorithms rarely improve on a plan near its bound, so give them little work then.
SearchEffort BestSearch::EffortForOtherOrders(const BestSolution& found,
                                              SearchEffort effort) const {
  if (found.is_optimal) return SearchEffort::kQuick;
  const bool is_near =
      found.schedule && found.overhead - found.lower_bound <= StepCost().count() / kNearParts;
  return is_near ? SearchEffort::kQuick : effort;
}

// Continues from `*before`, and updates it.
Result<BestSolution> BestSearch::SolveOwnOrder(Bytes budget, const BestWork& work,
                                               const std::vector<Schedule>& starts,
                                               std::optional<BestOutcome>* before) {
  const bool is_settled = *before && ((*before)->is_optimal || (*before)->is_infeasible);
  if (!is_settled) {
    Result<BestOutcome> outcome = SolveExpansion(expansion_, &own_problem_, budget, work, starts,
                                                 *before ? &**before : nullptr);
    if (!outcome.ok()) return std::move(outcome).error();
    before->emplace(std::move(outcome).value());
  }
  return SolutionFrom(**before, expansion_, BoundScope::kOwnOrder);
}

Result<BestSolution> BestSearch::SolveInOrder(Bytes budget, const OrderedProblem& problem,
                                              const BestWork& work) {
  if (problem.order == own_order_) {
    std::optional<BestOutcome> before;
    return SolveOwnOrder(budget, work, problem.starts, &before);
  }
  const Expansion expansion = ApplyConstraints(ExpandTensorGraph(graph_, problem.order));
  BestProblem expanded(expansion.graph, FindRecomputed(expansion), OthersOf(graph_, expansion));
  CKPLAN_ASSIGN_OR_RETURN(const BestOutcome outcome, SolveExpansion(expansion, &expanded, budget,
                                                                    work, problem.starts, nullptr));
  return SolutionFrom(outcome, expansion, BoundScope::kPlanOrder);
}

Result<BestOutcome> BestSearch::SolveExpansion(const Expansion& expansion, BestProblem* problem,
                                               Bytes budget, const BestWork& work,
                                               const std::vector<Schedule>& starts,
                                               const BestOutcome* before) const {
  BestOptions options;
  options.budget = budget.count();
  options.work = work;
  options.is_order_free = false;  // Backward runs in reverse forward order.
  options.before = before;
  if (enough_) options.enough = enough_->count();
  for (const Schedule& start : starts) options.starts.push_back(RunsOf(expansion, start));
  return SolveBest(problem, options);
}

// Searches for a better plan with steps in any order, and updates the best plan and its bounds.
Result<Done> BestSearch::SolveInAnyOrder(SearchEffort effort, Bytes budget, Progress* progress) {
  BestSolution& best = progress->best;
  BestOptions options;
  options.budget = budget.count();
  options.work = WorkOf(effort);
  if (progress->any_order) options.before = &*progress->any_order;
  if (enough_) options.enough = enough_->count();
  if (best.schedule) {
    Runs start = RunsOf(*any_order_, *best.schedule);
    // A plan that adds gradients in another order is not a plan of the expanded graph.
    if (Simulator(any_order_->graph).Run(start).ok()) options.starts.push_back(start);
  }
  CKPLAN_ASSIGN_OR_RETURN(BestOutcome found, SolveBest(&*any_order_problem_, options));
  const BestOutcome& outcome = progress->any_order.emplace(std::move(found));
  if (outcome.runs && (!best.schedule || outcome.overhead < best.overhead)) {
    const Schedule schedule = ScheduleOf(*any_order_, *outcome.runs);
    // The expanded graph may need less memory; see ExpandForAnyOrder.
    if (Simulator(graph_).Run(schedule).value().peak <= budget) {
      best = {schedule, outcome.overhead, 0, false, false};
    }
  }
  // A plan that adds gradients in another order is not a plan of the expanded graph, and may be
  // below its bounds. It keeps the bounds proven for its own order.
  const bool is_bound = !best.schedule || (outcome.any_order_bound <= best.overhead &&
                                           outcome.least_peak.bytes <= PeakOf(best));
  if (!is_bound) return Done{};
  best.lower_bound = outcome.any_order_bound;
  best.proof = outcome.any_order_proof;
  best.scope = BoundScope::kAnyOrder;
  best.least_peak = outcome.least_peak;
  best.is_optimal = best.schedule && best.overhead == best.lower_bound;
  best.is_infeasible = outcome.is_infeasible;
  return Done{};
}

Result<BestSolution> BestSearch::FindMinInAnyOrder(const BestSolution& known) {
  BestOptions options;
  options.work = kQuickWork;
  CKPLAN_ASSIGN_OR_RETURN(
      const LeastPeak lower,
      FindMinPeak(&*any_order_problem_, std::move(options), PeakOf(known).count()));
  BestSolution least = known;
  // The expanded graph may need less memory; see ExpandForAnyOrder.
  if (lower.runs) {
    BestSolution found = SolutionOf(ScheduleOf(*any_order_, *lower.runs));
    if (PeakOf(found) < PeakOf(known)) least = std::move(found);
  }
  least.least_peak = lower.bound;
  return least;
}

// Returns the orders of other algorithms' plans and of `known` that can lead to a better plan: the
// order of the best plan if it beats `own`, and the order with the lowest keep-all peak if that is
// below the peak in the graph's own order.
std::vector<BestSearch::OrderedProblem> BestSearch::FindOtherOrders(
    Bytes budget, const BestSolution& own, const std::optional<Schedule>& known,
    SearchEffort effort) const {
  const bool is_excluded = enough_ && own.lower_bound > enough_->count();
  const bool is_decided = own.is_optimal || own.is_infeasible || is_excluded;
  const WarmStartLimits work{WarmStartWork(effort), /*include_own_order=*/!is_decided};
  std::vector<Schedule> starts = WarmStarts({graph_, request_, budget}, work, limits_);
  PollStop();  // After a stop, other algorithms return errors: throw Stopped instead.
  if (known) starts.push_back(*known);
  std::optional<Order> cheapest;
  std::optional<Order> lightest;
  int64_t least_overhead = own.schedule ? own.overhead : std::numeric_limits<int64_t>::max();
  Bytes least_peak = PeakInOrder(graph_, own_order_);
  for (const Schedule& start : starts) {
    const Order order = ForwardOrder(start);
    const int64_t overhead = Simulator(graph_).Run(start).value().overhead.count();
    if (overhead < least_overhead) {
      least_overhead = overhead;
      cheapest = order;
    }
    if (order == own_order_) continue;
    const Bytes peak = PeakInOrder(graph_, order);
    if (peak < least_peak) {
      least_peak = peak;
      lightest = order;
    }
  }
  std::vector<OrderedProblem> problems;
  if (cheapest) problems.push_back({*cheapest, {}});
  if (lightest && lightest != cheapest) problems.push_back({*lightest, {}});
  for (OrderedProblem& problem : problems) {
    std::copy_if(starts.begin(), starts.end(), std::back_inserter(problem.starts),
                 [&](const Schedule& start) { return ForwardOrder(start) == problem.order; });
  }
  return problems;
}

// Returns the plan with the lowest peak found by another algorithm.
BestSolution BestSearch::MinPeakWarmStart() const {
  // The search that follows finds better plans than they do, except on small graphs.
  const SearchEffort effort =
      request_.effort == SearchEffort::kThorough ? SearchEffort::kThorough : SearchEffort::kQuick;
  BestSolution least = KeepAllSolution();
  const PlanProblem for_least{graph_, request_, std::nullopt, /*minimizes_peak=*/true};
  for (const Schedule& schedule : WarmStarts(for_least, {WarmStartWork(effort)}, limits_)) {
    BestSolution found = SolutionOf(schedule);
    if (PeakOf(found) < PeakOf(least)) least = std::move(found);
  }
  PollStop();  // After a stop, other algorithms return errors: throw Stopped instead.
  return least;
}

BestSolution BestSearch::SolutionOf(const Schedule& schedule) const {
  return {schedule, Simulator(graph_).Run(schedule).value().overhead.count()};
}

void BestSearch::KeepInCaseOfStop(const BestSolution& solution) {
  if (!solution.schedule) return;
  if (balance_ && found_ && !IsBetterBalanced(solution, *found_)) return;
  found_ = solution;
}

bool BestSearch::IsEnough(const BestSolution& solution) const {
  return enough_ && solution.schedule && solution.overhead <= enough_->count();
}

bool BestSearch::IsInOwnOrder(const Schedule& schedule) const {
  return ForwardOrder(schedule) == own_order_;
}

Bytes BestSearch::PeakOf(const BestSolution& solution) const {
  return Simulator(graph_).Run(*solution.schedule).value().peak;
}

CurvePoint BestSearch::PointOf(const BestSolution& solution) const {
  return {PeakOf(solution), Cost(solution.overhead)};
}

}  // namespace ckplan
