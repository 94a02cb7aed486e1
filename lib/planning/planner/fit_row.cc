#include "lib/planning/planner/fit_row.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "lib/planning/plan/accounting.h"
#include "lib/planning/plan/added_time.h"
#include "lib/planning/plan/outside.h"
#include "lib/planning/planner/best_planner.h"
#include "lib/planning/planner/largest_size.h"
#include "lib/planning/planner/memory_attempts.h"
#include "lib/planning/planner/planner.h"

namespace ckplan {
namespace {

// The SizeSearch::tolerance of bounds: they only say where the search for plans begins.
constexpr double kToleranceOfBounds = 0.02;

// The least value of a count without a plan, whatever the rounding of its figures.
constexpr double kJustTooMuch = 1 + std::numeric_limits<double>::epsilon();

// How many larger counts are tried after one for which the curve alone has no plan: the allocator
// may waste less for them.
constexpr int64_t kTriedByCurve = 12;

// Larger counts are tried at twice the distance after each series of this many plans.
constexpr int kBeforeDoubling = 4;

constexpr double kNever = std::numeric_limits<double>::infinity();

double Ratio(Cost part, Cost whole) {
  return whole > Cost(0) ? static_cast<double>(part.count()) / static_cast<double>(whole.count())
                         : 0;
}

// Returns a plan that adds at most `enough`, whether or not it fits with the allocator.
Result<PlanWithin> PlanWithinBudget(const SizedModel& sized, const PlanRequest& request,
                                    BestUntil* search, SearchDepth depth,
                                    const SolveLimits& limits) {
  if (request.algorithm == kBestAlgorithm) {
    return FindBestPlanWithin(sized.source.step(), request, search, depth, PlanDetail::kFigures);
  }
  Result<Plan> plan = MakePlan(sized.source, request, limits);
  if (!plan.ok()) {
    if (plan.error().code == ErrorCode::kInfeasible) return PlanWithin();
    return std::move(plan).error();
  }
  PlanWithin found;
  found.least_found = plan->figures.overhead;
  if (plan->figures.overhead <= search->enough()) found.plan = *std::move(plan);
  return found;
}

// Returns a plan within the memory and the added time, in percent of a step. Where `best` has no
// fallback plan, it has none. In a whole search, a fallback plan that adds little enough spares
// further attempts.
Result<PlanWithin> PlanAt(SizedModels& models, int64_t count, double added_percent,
                          SearchDepth depth, const SolveLimits& limits) {
  CKPLAN_ASSIGN_OR_RETURN(const SizedModel* sized, models.At(count));
  if (sized == nullptr) return PlanWithin();
  const TrainingStep step = sized->source.step();
  const PlanRequest& request = sized->source.request;
  if (sized->least_need > request.memory.bytes) return PlanWithin();
  BestUntil search(request, MostAdded(added_percent, sized->step), limits);
  CKPLAN_ASSIGN_OR_RETURN(PlanWithin found,
                          PlanWithinBudget(*sized, request, &search, depth, limits));
  if (!found.plan) return found;
  MemoryAttempts attempts(step, request);
  const auto fits = [&](const Schedule& schedule, Bytes peak) {
    return attempts.Fits(schedule, peak);
  };
  const bool is_by_best = request.algorithm == kBestAlgorithm;
  std::optional<Plan> sure;
  if (is_by_best && depth == SearchDepth::kWhole) {
    CKPLAN_ASSIGN_OR_RETURN(sure, FindFallbackPlan(step, request, limits, PlanDetail::kFigures));
    if (!sure) return PlanWithin();
    const Cost added = sure->figures.overhead;
    if (added <= search.enough() && !attempts.Fits(*found.plan))
      return PlanWithin{std::move(sure), added};
  }
  bool is_last = false;
  while (!found.plan || !attempts.Fits(*found.plan)) {
    std::optional<PlanRequest> next = attempts.After(found.plan ? &*found.plan : nullptr);
    if (!next && !is_last) {
      // Plans differ in what the allocator wastes, so one that was passed over may fit.
      is_last = true;
      const std::optional<Bytes> peak = search.PeakThatFits(fits);
      if (peak) next = attempts.RequestFor(*peak);
    }
    if (!next) return PlanWithin{std::nullopt, found.least_found};
    // A plan just above a budget that has none rarely fits.
    if (!found.plan || is_last) depth = SearchDepth::kCurve;
    CKPLAN_ASSIGN_OR_RETURN(found, PlanWithinBudget(*sized, *next, &search, depth, limits));
  }
  if (!is_by_best || sure) return found;
  CKPLAN_ASSIGN_OR_RETURN(sure, FindFallbackPlan(step, request, limits, PlanDetail::kFigures));
  return sure ? std::move(found) : PlanWithin();
}

// The value of a count is its added time as a fraction of the allowed added time.
class RowSearch {
 public:
  RowSearch(SizedModels* models, const FitAllowance& allowance, const SolveLimits& limits)
      : models_(*models), allowance_(allowance), limits_(limits) {}

  Result<std::optional<FitPlan>> Run(int64_t start) && {
    const MeasuredCount low = {start, 0};
    SizeSearch bounds;
    bounds.measure = [this](int64_t count) { return BoundOf(count); };
    bounds.tolerance = kToleranceOfBounds;
    CKPLAN_ASSIGN_OR_RETURN(const LargestSize allowed, FindLargestSize(low, bounds));
    SizeSearch plans;
    plans.reach = [this](int64_t fits) { return ReachFrom(fits); };
    plans.first_guess = allowed.fits.count;
    plans.parts = kExactCount;
    if (allowance_.has_curve) {
      plans.measure = [this](int64_t count) { return SearchAt(count, SearchDepth::kCurve); };
      plans.look_beyond = kTriedByCurve;
      if (allowed.does_not) plans.most = allowed.does_not->count - 1;
      CKPLAN_ASSIGN_OR_RETURN(const LargestSize edge, FindLargestSize(low, plans));
      CKPLAN_RETURN_IF_ERROR(ClimbFrom(edge.fits.count));
      return std::move(found_);
    }
    plans.measure = [this](int64_t count) { return SearchAt(count, SearchDepth::kWhole); };
    plans.look_beyond = allowance_.look_beyond;
    CKPLAN_ASSIGN_OR_RETURN(const LargestSize edge, FindLargestSize(low, plans));
    if (found_) found_->next = edge.does_not ? edge.does_not->count : kMaxCount;
    return std::move(found_);
  }

 private:
  // Goes up from the largest count for which the curve has a plan. Whole searches take much longer
  // where there is no plan, so the curve is read for a few more counts before each of them.
  Result<Done> ClimbFrom(int64_t low) {
    int64_t read_to = low;  // Between `low` and this, the curve has no plan.
    int64_t stride = 1;
    int in_a_row = 0;
    while (low < kMaxCount) {
      const int64_t unit = std::max<int64_t>(1, low / kExactCount);
      CKPLAN_ASSIGN_OR_RETURN(const int64_t above, ReadAbove(low, unit, &read_to));
      if (above > low) {
        low = above;
        continue;
      }
      const int64_t next = std::min(kMaxCount, low + stride * unit);
      CKPLAN_ASSIGN_OR_RETURN(const double value, SearchAt(next, SearchDepth::kWhole));
      if (value <= 1) {
        low = next;
        if (++in_a_row % kBeforeDoubling == 0) stride *= 2;
      } else if (stride > 1) {
        stride = 1;
        in_a_row = 0;
      } else {
        if (found_) found_->next = next;
        return Done{};
      }
    }
    if (found_) found_->next = kMaxCount;
    return Done{};
  }

  // Returns a count a little above `low` for which the curve has a plan, or `low` if there is none.
  Result<int64_t> ReadAbove(int64_t low, int64_t unit, int64_t* read_to) {
    const int64_t end = std::min(kMaxCount, low + kTriedByCurve * unit);
    for (int64_t count = std::max(low, *read_to) + unit; count <= end; count += unit) {
      CKPLAN_ASSIGN_OR_RETURN(const double value, SearchAt(count, SearchDepth::kCurve));
      *read_to = count;
      if (value <= 1) return count;
    }
    return low;
  }

  // Returns a lower bound on what plans in the model's order add. If plans may have another order,
  // it is no bound, but the search still starts from it.
  Result<double> BoundOf(int64_t count) {
    CKPLAN_ASSIGN_OR_RETURN(const SizedModel* sized, models_.At(count));
    if (sized == nullptr || sized->least_need > allowance_.memory) return kNever;
    if (sized->need() <= allowance_.memory) return 0.0;
    const auto bound = sized->Bound(allowance_.memory - sized->covered);
    if (!bound) return kNever;
    return PartOfMost(Ratio(*bound, sized->step));
  }

  // Returns what the best plan found adds.
  Result<double> SearchAt(int64_t count, SearchDepth depth) {
    CKPLAN_ASSIGN_OR_RETURN(PlanWithin within,
                            PlanAt(models_, count, allowance_.added_percent, depth, limits_));
    // Where the curve has no plan, its best one says little of how far away the edge is.
    if (!within.least_found || (!within.plan && depth == SearchDepth::kCurve)) return kNever;
    CKPLAN_ASSIGN_OR_RETURN(const SizedModel* sized, models_.At(count));
    const double value = PartOfMost(Ratio(*within.least_found, sized->step));
    if (!within.plan) return std::max(value, kJustTooMuch);
    found_ = {count, 0, *std::move(within.plan)};
    return std::min(value, 1.0);
  }

  // Returns the largest count for which the last plan found, that for `fits`, still has enough
  // memory, if its peak and the inputs grow in proportion to the count.
  Result<int64_t> ReachFrom(int64_t fits) {
    CKPLAN_ASSIGN_OR_RETURN(const SizedModel* sized, models_.At(fits));
    const Bytes growing = found_->plan.figures.peak + sized->source.step().constants().inputs;
    const Accounting account = AccountForPlan(sized->source, found_->plan);
    const Bytes left =
        allowance_.memory - OutsideInMemory(sized->source.request) - account.tensor_bytes();
    if (growing == Bytes(0)) return fits;
    const double growth = static_cast<double>(left.count()) / static_cast<double>(growing.count());
    const double further = std::floor(static_cast<double>(fits) * growth);
    return fits + static_cast<int64_t>(std::min(further, static_cast<double>(kMaxCount)));
  }

  // Returns the added time as a fraction of the allowed added time. If none is allowed, any added
  // time is too much.
  double PartOfMost(double share) const {
    if (allowance_.added_percent > 0) return 100 * share / allowance_.added_percent;
    return share > 0 ? kNever : 0;
  }

  SizedModels& models_;
  const FitAllowance& allowance_;
  const SolveLimits& limits_;
  std::optional<FitPlan> found_;  // The plan for the largest count that has one.
};

}  // namespace

Result<std::optional<FitPlan>> FindLargestPlan(SizedModels* models, const FitAllowance& allowance,
                                               int64_t start, const SolveLimits& limits) {
  return RowSearch(models, allowance, limits).Run(start);
}

Result<bool> HasPlan(SizedModels* models, int64_t count, const SolveLimits& limits) {
  CKPLAN_ASSIGN_OR_RETURN(const SizedModel* sized, models->At(count));
  if (sized == nullptr) return false;
  const PlanRequest& request = sized->source.request;
  CKPLAN_ASSIGN_OR_RETURN(
      const std::optional<Plan> sure,
      FindFallbackPlan(sized->source.step(), request, limits, PlanDetail::kFigures));
  if (sure || request.algorithm == kBestAlgorithm) return sure.has_value();
  const Result<Plan> plan = MakePlan(sized->source, request, limits);
  if (!plan.ok() && plan.error().code != ErrorCode::kInfeasible) return plan.error();
  return plan.ok();
}

}  // namespace ckplan
