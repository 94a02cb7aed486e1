#include "lib/planning/planner/micro_batch_search.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "lib/base/stop.h"
#include "lib/planning/plan/added_time.h"
#include "lib/planning/plan/request_fields.h"
#include "lib/planning/planner/peak_budget.h"
#include "lib/planning/planner/warm_starts.h"

namespace ckplan {
namespace {

constexpr int64_t kLimits = 12;
constexpr int kHalvings = 4;

// Returns the request for one micro-batch.
PlanRequest OneMicroBatchRequest(PlanRequest request, SearchEffort effort) {
  request.effort = effort;
  request.pipeline.reset();
  for (const RequestField& field : RequestFields()) {
    if (field.scope.is_of_pipelines) ResetField(field, &request);
  }
  return request;
}

// Replaces the proven bound by the trivial one: an overhead of 0.
void ResetProof(BestSolution* solution) {
  solution->lower_bound = 0;
  solution->proof = OverheadProof::kRunOnce;
  solution->scope = BoundScope::kAnyOrder;
  solution->is_optimal = solution->overhead == 0;
}

}  // namespace

MicroBatchSearch::MicroBatchSearch(const TensorGraph& graph, const PlanRequest& request,
                                   const SolveLimits& limits)
    : graph_(graph),
      one_(OfOneMicroBatch(graph)),
      request_(request),
      limits_(limits),
      one_request_(OneMicroBatchRequest(request, request.effort)),
      quick_request_(OneMicroBatchRequest(request, SearchEffort::kQuick)),
      search_(one_, one_request_, limits),
      quick_(one_, quick_request_, limits),
      simulator_(graph_) {}

MicroBatchSearch::Found MicroBatchSearch::Measure(Bytes limit, BestSolution solution) {
  const Simulation simulation = simulator_.Run(*solution.schedule).value();
  return Found{limit,
               std::move(solution),
               {simulation.peak, simulation.overhead},
               simulation.peak - simulation.other_micro_batches};
}

Result<Done> MicroBatchSearch::Try(Bytes limit, BestSearch* search) {
  CKPLAN_ASSIGN_OR_RETURN(BestSolution solution, search->Solve(limit));
  if (!solution.schedule) return Done{};
  Add(Measure(limit, std::move(solution)));
  return Done{};
}

void MicroBatchSearch::Add(Found found) {
  const auto at = std::upper_bound(found_.begin(), found_.end(), found.limit,
                                   [](Bytes a, const Found& b) { return a < b.limit; });
  found_.insert(at, std::move(found));
}

void MicroBatchSearch::AddWarmStarts(std::optional<Bytes> budget) {
  // Slow algorithms would take too long for many limits on one micro-batch, and `best` tries these
  // limits itself.
  const WarmStartLimits work{WarmStartWork(one_request_.effort), /*include_own_order=*/true,
                             /*include_slow=*/false};
  const PlanProblem problem{graph_, request_, budget, /*minimizes_peak=*/!budget};
  for (const Schedule& schedule : WarmStarts(problem, work, limits_)) {
    const Cost overhead = simulator_.Run(schedule).value().overhead;
    Found found = Measure(Bytes(0), {schedule, overhead.count()});
    found.limit = found.own_peak;
    Add(std::move(found));
  }
  PollStop();  // After a stop, other algorithms return errors: throw Stopped instead.
}

Result<Done> MicroBatchSearch::TryGrid() {
  if (!found_.empty()) return Done{};
  CKPLAN_ASSIGN_OR_RETURN(BestSolution least, quick_.SolveForMinPeak());
  least_peak_ = least.least_peak;
  const Bytes low = Simulator(one_).Run(*least.schedule).value().peak;
  const Bytes high = KeepAllPeak(one_);
  for (int64_t i = 0; i <= kLimits && low <= high; ++i) {
    const Bytes step((high - low).count() / kLimits * i);
    CKPLAN_RETURN_IF_ERROR(Try(i == kLimits ? high : low + step, &quick_));
  }
  // The plan with the lowest peak may differ from the plan found with this peak as the limit.
  found_.insert(found_.begin(), Measure(low, std::move(least)));
  AddWarmStarts(std::nullopt);
  return LowerMinPeak();
}

// Lowers the lowest peak found as long as a search for one byte less succeeds. Otherwise Solve,
// which starts with such a search, could find a lower peak than SolveForMinPeak.
Result<Done> MicroBatchSearch::LowerMinPeak() {
  for (Bytes least = LowestPeakFound().point.peak;;) {
    CKPLAN_RETURN_IF_ERROR(Try(least - Bytes(1), &search_));
    const Bytes now = LowestPeakFound().point.peak;
    if (now == least) return Done{};
    least = now;
  }
}

const MicroBatchSearch::Found& MicroBatchSearch::LowestPeakFound() const {
  return *std::min_element(found_.begin(), found_.end(), [](const Found& a, const Found& b) {
    return std::pair(a.point.peak, a.point.overhead) < std::pair(b.point.peak, b.point.overhead);
  });
}

// Returns the plan with the lowest memory that adds no more or, if every plan adds more, the
// fastest plan.
const MicroBatchSearch::Found& MicroBatchSearch::LeastWithin(Cost most_added) const {
  const auto rank = [most_added](const Found& found) {
    const Cost above = std::max(Cost(0), found.point.overhead - most_added);
    return std::tuple(above, found.point.peak, found.point.overhead);
  };
  return *std::min_element(found_.begin(), found_.end(),
                           [&](const Found& a, const Found& b) { return rank(a) < rank(b); });
}

const MicroBatchSearch::Found& MicroBatchSearch::BestBalancedFound() const {
  return *std::min_element(found_.begin(), found_.end(), [this](const Found& a, const Found& b) {
    return balance_->IsBetter(a.point, b.point);
  });
}

const MicroBatchSearch::Found* MicroBatchSearch::BestWithin(Bytes budget) const {
  const Found* best = nullptr;
  for (const Found& found : found_) {
    if (found.point.peak > budget) continue;
    const bool is_better = best == nullptr || std::pair(found.point.overhead, found.point.peak) <
                                                  std::pair(best->point.overhead, best->point.peak);
    if (is_better) best = &found;
  }
  return best;
}

// Bisects between the limit of the best plan that fits and the next limit a few times.
Result<Done> MicroBatchSearch::HalveAbove(Bytes budget) {
  for (int i = 0; i < kHalvings; ++i) {
    const Found* const best = BestWithin(budget);
    if (best == nullptr || best->point.overhead == Cost(0)) break;
    const Bytes low = best->limit;
    const auto next = std::find_if(found_.begin(), found_.end(),
                                   [low](const Found& found) { return found.limit > low; });
    if (next == found_.end() || (next->limit - low).count() < 2) break;
    CKPLAN_RETURN_IF_ERROR(Try(Bytes(low.count() + (next->limit - low).count() / 2), &quick_));
  }
  return Done{};
}

// Bisects a few times between the limit of the plan with the lowest memory that adds no more, and
// the limit before it.
Result<Done> MicroBatchSearch::HalveBelow(Cost most_added) {
  for (int i = 0; i < kHalvings; ++i) {
    const Bytes high = LeastWithin(most_added).limit;
    const auto at = std::find_if(found_.begin(), found_.end(),
                                 [high](const Found& found) { return found.limit >= high; });
    if (at == found_.begin()) break;
    const Bytes low = std::prev(at)->limit;
    if ((high - low).count() < 2) break;
    CKPLAN_RETURN_IF_ERROR(Try(Bytes(low.count() + (high - low).count() / 2), &quick_));
  }
  return Done{};
}

// Bisects a few times on both sides of the limit of the plan with the best balance.
Result<Done> MicroBatchSearch::HalveBesideBalanced() {
  for (int i = 0; i < kHalvings; ++i) {
    const Bytes limit = BestBalancedFound().limit;
    Bytes below = limit;
    Bytes above = limit;
    for (const Found& found : found_) {
      if (found.limit < limit) below = found.limit;
      if (found.limit > limit && above == limit) above = found.limit;
    }
    for (const auto& [low, high] : {std::pair(below, limit), std::pair(limit, above)}) {
      const int64_t gap = (high - low).count();
      if (gap >= 2) CKPLAN_RETURN_IF_ERROR(Try(low + Bytes(gap / 2), &quick_));
    }
  }
  return Done{};
}

// Tells whether a bound of this scope holds for the plan. Proofs for one order don't apply to
// others.
bool MicroBatchSearch::ScopeCovers(BoundScope scope, const Found& found) const {
  return scope == BoundScope::kAnyOrder ||
         (scope == BoundScope::kOwnOrder && search_.IsInOwnOrder(*found.solution.schedule));
}

// A plan that adds gradients in another order may be below the bound.
PeakBound MicroBatchSearch::MinPeakOf(const Found& found) const {
  const bool is_bound =
      ScopeCovers(least_peak_.scope, found) && least_peak_.bytes <= found.own_peak;
  return is_bound ? least_peak_ : PeakBound();
}

BestSolution MicroBatchSearch::SolutionWithoutProof(const Found& found) const {
  BestSolution solution = found.solution;
  ResetProof(&solution);
  solution.least_peak = MinPeakOf(found);
  return solution;
}

Result<BestSolution> MicroBatchSearch::Solve(Bytes budget) {
  CKPLAN_ASSIGN_OR_RETURN(BestSolution relaxed, search_.Solve(budget));
  // Either no micro-batch fits, or all fit.
  if (!relaxed.schedule) return relaxed;
  if (simulator_.Run(*relaxed.schedule).value().peak <= budget) return relaxed;
  CKPLAN_RETURN_IF_ERROR(TryGrid());
  AddWarmStarts(budget);
  CKPLAN_RETURN_IF_ERROR(HalveAbove(budget));
  if (const Found* const quick = BestWithin(budget)) {
    CKPLAN_RETURN_IF_ERROR(Try(quick->limit, &search_));
  }
  const Found* const best = BestWithin(budget);
  if (best == nullptr) {
    BestSolution none;
    none.least_peak = relaxed.least_peak;
    return none;
  }
  BestSolution solution = SolutionWithoutProof(*best);
  if (!ScopeCovers(relaxed.scope, *best) || relaxed.lower_bound > solution.overhead) {
    return solution;
  }
  if (relaxed.lower_bound == 0) return solution;
  solution.lower_bound = relaxed.lower_bound;
  solution.proof = relaxed.proof;
  solution.scope = relaxed.scope;
  solution.is_optimal = solution.overhead == solution.lower_bound;
  return solution;
}

Result<BestSolution> MicroBatchSearch::SolveForMinPeak() {
  CKPLAN_RETURN_IF_ERROR(TryGrid());
  return SolutionWithoutProof(LowestPeakFound());
}

Result<BestSolution> MicroBatchSearch::SolveWithinAddedTime(Cost most_added) {
  most_added_ = most_added;
  CKPLAN_RETURN_IF_ERROR(TryGrid());
  CKPLAN_RETURN_IF_ERROR(HalveBelow(most_added));
  CKPLAN_RETURN_IF_ERROR(Try(LeastWithin(most_added).limit, &search_));
  return SolutionWithoutProof(LeastWithin(most_added));
}

Result<BestSolution> MicroBatchSearch::SolveForBalance(const Balance& balance) {
  balance_ = balance;
  CKPLAN_RETURN_IF_ERROR(SolveWithinAddedTime(MostAdded(kAddedPercentWithoutBudget, balance.step)));
  CKPLAN_RETURN_IF_ERROR(HalveBesideBalanced());
  CKPLAN_RETURN_IF_ERROR(Try(BestBalancedFound().limit, &search_));
  return SolutionWithoutProof(BestBalancedFound());
}

std::optional<BestSolution> MicroBatchSearch::found() const {
  if (found_.empty()) return std::nullopt;
  if (balance_) return SolutionWithoutProof(BestBalancedFound());
  const Budget& budget = PeakBudgetOf(request_);
  if (!budget.is_given()) return SolutionWithoutProof(LeastWithin(most_added_));
  if (budget.kind == Budget::Kind::kMin) return SolutionWithoutProof(LowestPeakFound());
  const Found* const best = BestWithin(*BudgetInBytes(graph_, request_));
  return best == nullptr ? std::nullopt : std::optional(SolutionWithoutProof(*best));
}

std::vector<CurvePoint> MicroBatchSearch::CurveToShow(const BestSolution&) const {
  if (PeakBudgetOf(request_).is_given()) return {};
  return ShownPoints(Points(), graph_.forward_cost() + graph_.backward_cost());
}

Result<std::vector<CurvePoint>> MicroBatchSearch::TraceCurve(Cost most_added) {
  CKPLAN_RETURN_IF_ERROR(SolveWithinAddedTime(most_added));
  return Points();
}

std::vector<CurvePoint> MicroBatchSearch::Points() const {
  std::vector<CurvePoint> points;
  for (const Found& found : found_) points.push_back(found.point);
  return FrontOf(std::move(points));
}

}  // namespace ckplan
