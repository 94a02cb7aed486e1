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
#include "lib/planning/planner/one_algorithm.h"
#include "lib/planning/planner/planner.h"

namespace ckplan {
namespace {

// SizeSearch::tolerance for bounds, which only say where to start the search for plans.
constexpr double kToleranceOfBounds = 0.02;

// The smallest value of a count without a plan, despite rounding.
constexpr double kJustTooMuch = 1 + std::numeric_limits<double>::epsilon();

// How many larger counts are tried after one for which the curve alone has no plan: the allocator
// may waste less for them.
constexpr int64_t kTriedByCurve = 6;

constexpr double kNever = std::numeric_limits<double>::infinity();

double Ratio(Cost part, Cost whole) {
  return whole > Cost(0) ? static_cast<double>(part.count()) / static_cast<double>(whole.count())
                         : 0;
}

// Returns a plan that adds at most `enough`, even if it doesn't fit with the allocator.
Result<PlanWithin> PlanWithinBudget(const SizedModel& sized, const PlanRequest& request,
                                    BestUntil* search, const SolveLimits& limits) {
  if (request.algorithm == kBestAlgorithm) {
    return FindBestPlanWithin(sized.source.step(), request, search, SearchDepth::kWhole,
                              PlanDetail::kFigures);
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

// Returns a plan within the memory and the added time, in percent of a step. Without a fallback
// plan, `best` has none. A fallback plan that adds little enough saves further attempts.
Result<PlanWithin> PlanAt(SizedModels& models, int64_t count, double added_percent,
                          const SolveLimits& limits) {
  CKPLAN_ASSIGN_OR_RETURN(const SizedModel* sized, models.At(count));
  if (sized == nullptr) return PlanWithin();
  const TrainingStep step = sized->source.step();
  const PlanRequest& request = sized->source.request;
  if (sized->least_need > request.memory.bytes) return PlanWithin();
  BestUntil search(request, MostAdded(added_percent, sized->step), limits);
  CKPLAN_ASSIGN_OR_RETURN(PlanWithin found, PlanWithinBudget(*sized, request, &search, limits));
  if (!found.plan) return found;
  MemoryAttempts attempts(step, request);
  bool fits = attempts.Fits(*found.plan);
  if (request.algorithm == kBestAlgorithm) {
    CKPLAN_ASSIGN_OR_RETURN(std::optional<Plan> sure,
                            FindFallbackPlan(step, request, limits, PlanDetail::kFigures));
    if (!sure) return PlanWithin();
    const Cost added = sure->figures.overhead;
    if (!fits && added <= search.enough()) return PlanWithin{std::move(sure), added};
  }
  while (!fits) {
    const std::optional<PlanRequest> next = attempts.After(found.plan ? &*found.plan : nullptr);
    if (!next) return PlanWithin{std::nullopt, found.least_found};
    CKPLAN_ASSIGN_OR_RETURN(found, PlanWithinBudget(*sized, *next, &search, limits));
    fits = found.plan && attempts.Fits(*found.plan);
  }
  return found;
}

// Returns a plan of PlanAt that `best` reads off the curve; whether there is a fallback plan, is
// left to the caller. If the curve has no plan within the memory even without the allocator,
// `least_found` is empty.
Result<PlanWithin> ReadPlanAt(SizedModels& models, int64_t count, double added_percent,
                              const SolveLimits& limits) {
  CKPLAN_ASSIGN_OR_RETURN(const SizedModel* sized, models.At(count));
  if (sized == nullptr) return PlanWithin();
  const PlanRequest& request = sized->source.request;
  if (sized->least_need > request.memory.bytes) return PlanWithin();
  const TrainingStep step = sized->source.step();
  const Cost enough = MostAdded(added_percent, sized->step);
  return ReadPlanWithinMemory(step, request, enough, limits, PlanDetail::kFigures);
}

// A count's value is its added time as a fraction of the allowed added time.
class RowSearch {
 public:
  RowSearch(SizedModels* models, const FitAllowance& allowance, const SolveLimits& limits,
            TriedSizes* tried)
      : models_(*models), allowance_(allowance), limits_(limits), tried_(*tried) {}

  Result<std::optional<FitPlan>> Run(int64_t start) && {
    MeasuredCount low = {start, 0};
    SizeSearch bounds;
    bounds.measure = [this](int64_t count) { return BoundOf(count); };
    bounds.tolerance = kToleranceOfBounds;
    CKPLAN_ASSIGN_OR_RETURN(const LargestSize allowed, FindLargestSize(low, bounds));
    SizeSearch plans;
    plans.reach = [this](int64_t fits) { return ReachFrom(fits); };
    plans.first_guess = allowed.fits.count;
    plans.parts = kExactCount;
    if (allowance_.has_curve) {
      SizeSearch readings = plans;
      readings.measure = [this](int64_t count) { return ReadAt(count); };
      readings.look_beyond = kTriedByCurve;
      if (allowed.does_not) readings.most = allowed.does_not->count - 1;
      CKPLAN_ASSIGN_OR_RETURN(low, FindFrom({start, 0}, readings));
      // A plan without a fallback plan is rare, so the sizes on the way are checked only then.
      if (found_) {
        CKPLAN_ASSIGN_OR_RETURN(checks_each_, LacksFallback(found_->count));
      }
      if (checks_each_) {
        found_.reset();
        CKPLAN_ASSIGN_OR_RETURN(low, FindFrom({start, 0}, readings));
      }
      if (!allowance_.searches) return std::move(found_);
      plans.first_guess = low.count + 1;
    }
    plans.measure = [this](int64_t count) { return SearchAt(count); };
    plans.look_beyond = allowance_.look_beyond;
    CKPLAN_RETURN_IF_ERROR(FindFrom(low, plans));
    return std::move(found_);
  }

 private:
  Result<MeasuredCount> FindFrom(MeasuredCount low, const SizeSearch& search) {
    CKPLAN_ASSIGN_OR_RETURN(const LargestSize edge, FindLargestSize(low, search));
    if (found_) found_->next = edge.does_not ? edge.does_not->count : kMaxCount;
    return edge.fits;
  }

  Result<bool> LacksFallback(int64_t count) {
    if (const auto known = tried_.has_plan.find(count); known != tried_.has_plan.end()) {
      return !known->second;
    }
    CKPLAN_ASSIGN_OR_RETURN(const bool has_plan, HasPlan(&models_, count, limits_));
    tried_.has_plan[count] = has_plan;
    return !has_plan;
  }

  std::optional<Cost> BoundAt(int64_t count, const SizedModel& sized) {
    auto known = tried_.bounds.find(count);
    if (known == tried_.bounds.end()) {
      const auto bound = sized.Bound(allowance_.memory - sized.covered);
      known = tried_.bounds.emplace(count, bound).first;
    }
    return known->second;
  }

  // Returns a lower bound on what plans in the model's order add. If plans may have another order,
  // it is no bound, but the search still starts from it.
  Result<double> BoundOf(int64_t count) {
    CKPLAN_ASSIGN_OR_RETURN(const SizedModel* sized, models_.At(count));
    if (sized == nullptr || sized->least_need > allowance_.memory) return kNever;
    if (sized->need() <= allowance_.memory) return 0.0;
    const std::optional<Cost> bound = BoundAt(count, *sized);
    if (!bound) return kNever;
    return PartOfMost(Ratio(*bound, sized->step));
  }

  // Returns the added time of the best plan found.
  Result<double> SearchAt(int64_t count) {
    CKPLAN_ASSIGN_OR_RETURN(PlanWithin within,
                            PlanAt(models_, count, allowance_.added_percent, limits_));
    if (!within.least_found) return kNever;
    CKPLAN_ASSIGN_OR_RETURN(const SizedModel* sized, models_.At(count));
    const double value = PartOfMost(Ratio(*within.least_found, sized->step));
    if (!within.plan) return std::max(value, kJustTooMuch);
    found_ = {count, 0, *std::move(within.plan)};
    return std::min(value, 1.0);
  }

  // Like SearchAt, but reads the curve. If no plan on it adds little enough, the least added time
  // says little about how far away the largest size is, so the value is then infinite.
  Result<double> ReadAt(int64_t count) {
    if (count >= without_plan_) return kNever;
    CKPLAN_ASSIGN_OR_RETURN(PlanWithin within,
                            ReadPlanAt(models_, count, allowance_.added_percent, limits_));
    if (!within.least_found) without_plan_ = count;
    if (!within.plan) return kNever;
    if (checks_each_) {
      CKPLAN_ASSIGN_OR_RETURN(const bool is_unsure, LacksFallback(count));
      if (is_unsure) return kNever;
    }
    found_ = {count, 0, *std::move(within.plan)};
    CKPLAN_ASSIGN_OR_RETURN(const SizedModel* sized, models_.At(count));
    return std::min(PartOfMost(Ratio(*within.least_found, sized->step)), 1.0);
  }

  // Returns the largest count for which the last plan found, that for `fits`, would still fit if
  // its peak and the inputs grow in proportion.
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
  TriedSizes& tried_;
  bool checks_each_ = false;              // ReadAt checks that there is a fallback plan.
  int64_t without_plan_ = kMaxCount + 1;  // The smallest count known to have no plan on the curve.
  std::optional<FitPlan> found_;          // The plan for the largest count that has one.
};

}  // namespace

Result<std::optional<FitPlan>> FindLargestPlan(SizedModels* models, const FitAllowance& allowance,
                                               int64_t start, const SolveLimits& limits,
                                               TriedSizes* tried) {
  return RowSearch(models, allowance, limits, tried).Run(start);
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
