#include "lib/planner/fit_row.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "lib/plan/added_time.h"
#include "lib/planner/best_planner.h"
#include "lib/planner/find_edge.h"
#include "lib/planner/planner.h"

namespace ckplan {
namespace {

// As EdgeSearch::noise: what the plans add that are found for neighbouring sizes jumps as much as
// it grows over such a part of the size.
constexpr double kNoiseOfPlans = 0.02;

// As EdgeSearch::tolerance: where the search for plans begins need not be known better.
constexpr double kToleranceOfBounds = 0.02;

// What a measure is at least where there is no plan, however it is rounded.
constexpr double kJustTooMuch = 1 + std::numeric_limits<double>::epsilon();

constexpr double kNever = std::numeric_limits<double>::infinity();

double Ratio(Cost part, Cost whole) {
  return whole > Cost(0) ? static_cast<double>(part.count()) / static_cast<double>(whole.count())
                         : 0;
}

// Counts are measured in parts of what may be added.
class RowSearch {
 public:
  RowSearch(SizedModels* models, const FitAllowance& allowance, const SolveLimits& limits)
      : models_(*models), allowance_(allowance), limits_(limits) {}

  Result<std::optional<FitPlan>> Run(int64_t start) && {
    const MeasuredCount low = {start, 0};
    EdgeSearch bounds;
    bounds.measure = [this](int64_t count) { return BoundOf(count); };
    bounds.tolerance = kToleranceOfBounds;
    CKPLAN_ASSIGN_OR_RETURN(const Edge allowed, FindEdge(low, bounds));
    EdgeSearch plans;
    plans.measure = [this](int64_t count) { return SearchAt(count); };
    plans.reach = [this](int64_t fits) { return ReachFrom(fits); };
    plans.first_guess = allowed.fits.count;
    plans.noise = kNoiseOfPlans;
    CKPLAN_RETURN_IF_ERROR(FindEdge(low, plans));
    return std::move(found_);
  }

 private:
  // What a plan in the model's order adds at least. Where plans may have another order it is no
  // bound, but the search begins there as well.
  Result<double> BoundOf(int64_t count) {
    CKPLAN_ASSIGN_OR_RETURN(const SizedModel* sized, models_.At(count));
    if (sized == nullptr || sized->constants >= allowance_.memory) return kNever;
    if (sized->need() <= allowance_.memory) return 0.0;
    const auto bound = sized->Bound(allowance_.memory - sized->constants);
    if (!bound) return kNever;
    return PartOfMost(Ratio(*bound, sized->step));
  }

  // What the best plan that is found adds.
  Result<double> SearchAt(int64_t count) {
    CKPLAN_ASSIGN_OR_RETURN(PlanWithin within, PlanAt(count));
    if (!within.least_found) return kNever;
    CKPLAN_ASSIGN_OR_RETURN(const SizedModel* sized, models_.At(count));
    const double value = PartOfMost(Ratio(*within.least_found, sized->step));
    if (!within.plan) return std::max(value, kJustTooMuch);
    found_ = {count, *std::move(within.plan)};
    return std::min(value, 1.0);
  }

  // Up to where there is memory for the plan for `fits`, the last that was found, if its peak and
  // the inputs grow as the count does.
  Result<int64_t> ReachFrom(int64_t fits) {
    CKPLAN_ASSIGN_OR_RETURN(const SizedModel* sized, models_.At(fits));
    const Bytes growing = found_->plan.figures.peak + sized->source.step().constants().inputs;
    const Bytes left = allowance_.memory - sized->constants - found_->plan.figures.peak;
    if (growing == Bytes(0)) return fits;
    const double growth = static_cast<double>(left.count()) / static_cast<double>(growing.count());
    const double further = std::floor(static_cast<double>(fits) * growth);
    return fits + static_cast<int64_t>(std::min(further, static_cast<double>(kMaxCount)));
  }

  // What is added, as a part of what may be added; nothing may be added to nothing.
  double PartOfMost(double share) const {
    if (allowance_.added_percent > 0) return 100 * share / allowance_.added_percent;
    return share > 0 ? kNever : 0;
  }

  Result<PlanWithin> PlanAt(int64_t count) {
    CKPLAN_ASSIGN_OR_RETURN(const SizedModel* sized, models_.At(count));
    if (sized == nullptr || sized->constants >= allowance_.memory) return PlanWithin();
    PlanRequest request = sized->source.request;
    request.total_budget = Budget::Of(allowance_.memory);
    const Cost enough = MostAdded(allowance_.added_percent, sized->step);
    if (request.algorithm == kBestAlgorithm) {
      return FindBestPlanWithin(sized->source.step(), request, enough, limits_);
    }
    Result<Plan> plan = MakePlan(sized->source, request, limits_);
    if (!plan.ok()) {
      if (plan.error().code == ErrorCode::kInfeasible) return PlanWithin();
      return std::move(plan).error();
    }
    PlanWithin found;
    found.least_found = plan->figures.overhead;
    if (plan->figures.overhead <= enough) found.plan = *std::move(plan);
    return found;
  }

  SizedModels& models_;
  const FitAllowance& allowance_;
  const SolveLimits& limits_;
  std::optional<FitPlan> found_;  // For the largest count with one.
};

}  // namespace

Result<std::optional<FitPlan>> FindLargestPlan(SizedModels* models, const FitAllowance& allowance,
                                               int64_t start, const SolveLimits& limits) {
  return RowSearch(models, allowance, limits).Run(start);
}

}  // namespace ckplan
