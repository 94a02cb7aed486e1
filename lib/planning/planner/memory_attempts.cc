#include "lib/planning/planner/memory_attempts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <utility>

#include "lib/base/text.h"
#include "lib/planning/plan/accounting.h"
#include "lib/planning/plan/added_time.h"
#include "lib/planning/plan/optimizer_state.h"
#include "lib/planning/plan/outside.h"
#include "lib/planning/planner/best_planner.h"
#include "lib/planning/planner/peak_budget.h"
#include "lib/planning/planner/registry.h"

namespace ckplan {
namespace {

// The last of these has room for all gradients.
constexpr int kAttemptsForGradients = 4;
constexpr int kAttemptsForAllocator = 7;
// The first of these leaves the allocator this part of the memory; each later one leaves it twice
// as much.
constexpr int64_t kFirstPart = 256;
// How often to bisect between a plan that doesn't fit and a budget without a plan.
constexpr int kAttemptsBetween = 2;

// Plans are read off the curve for each of these added times, in percent of a step, until one fits.
constexpr std::array kReadPercents = {5.0, 10.0, 20.0, 30.0};

std::string BytesText(Bytes bytes) {
  return fmt::format("{} ({} bytes)", HumanBytes(bytes), bytes.count());
}

Bytes NeedOf(const TrainingStep& step, const PlanRequest& request, const Plan& plan) {
  return AccountFor({step, request, Bytes(0)}, plan.schedule, plan.figures.peak).need();
}

Bytes TensorsOf(const TrainingStep& step, PlanRequest request, const Plan& plan) {
  request.reserve = Bytes(0);  // So that no allocator is rehearsed.
  return AccountFor({step, request, Bytes(0)}, plan.schedule, plan.figures.peak).tensor_bytes();
}

// The optimizer's step can need more than any backward pass.
Error OptimizerNeedsMore(Bytes least, const PlanRequest& request) {
  return MakeError(
      ErrorCode::kInfeasible,
      fmt::format(
          "infeasible: the optimizer step of {1} alone needs {0} or more; the memory is {2}",
          BytesText(least), NameOf(request.optimizer), BytesText(request.memory.bytes)));
}

Error AllocatorNeedsMore(Bytes need, const PlanRequest& request) {
  return MakeError(ErrorCode::kInfeasible,
                   fmt::format("infeasible: no plan was found that fits {} together with gradients "
                               "and what PyTorch's allocator wastes; the last one tried needs {}",
                               BytesText(request.memory.bytes), BytesText(need)));
}

PlanRequest ForMinPeak(PlanRequest request) {
  request.memory = {};
  request.reserve.reset();
  request.budget.kind = Budget::Kind::kMin;
  return request;
}

// Returns the plan on the curve that fits and adds the least time, but less than `below`.
Result<std::optional<Plan>> ReadFastestPlan(const TrainingStep& step, const PlanRequest& request,
                                            Cost below, const SolveLimits& limits,
                                            PlanDetail detail) {
  const bool has_curve = request.algorithm == kBestAlgorithm && HasOneCurve(step, request);
  if (!has_curve) return std::optional<Plan>();
  for (const double percent : kReadPercents) {
    const Cost enough = MostAdded(percent, step.cost());
    if (enough >= below) break;
    CKPLAN_ASSIGN_OR_RETURN(PlanWithin found,
                            ReadPlanWithinMemory(step, request, enough, limits, detail));
    if (found.plan) return std::move(found.plan);
  }
  return std::optional<Plan>();
}

// Returns the first plan that fits: `plan`, or one of smaller and smaller budgets. If `plan`
// doesn't fit, a plan on the curve may be faster than that of another attempt, because the
// allocator wastes less with it.
Result<Plan> FirstThatFits(const TrainingStep& step, const PlanRequest& request,
                           const SolveLimits& limits,
                           const std::function<Result<Plan>(const PlanRequest&)>& make,
                           Result<Plan> plan) {
  MemoryAttempts attempts(step, request);
  std::optional<Plan> last;  // That was too large.
  while (plan.ok() ? !attempts.Fits(*plan) : plan.error().code == ErrorCode::kInfeasible) {
    const std::optional<PlanRequest> next = attempts.After(plan.ok() ? &*plan : nullptr);
    if (plan.ok()) last = *std::move(plan);
    if (!next) {
      return last ? AllocatorNeedsMore(NeedOf(step, request, *last), request) : std::move(plan);
    }
    plan = make(*next);
  }
  if (!plan.ok() || !last) return plan;
  Result<std::optional<Plan>> read =
      ReadFastestPlan(step, request, plan->figures.overhead, limits, PlanDetail::kWhole);
  // A stop must not discard the plan.
  return read.ok() && *read ? **std::move(read) : std::move(plan);
}

// Returns the plan with the lowest peak if it fits, otherwise an error that names enough memory.
Result<Plan> LeastOrRefusal(const TrainingStep& step, const PlanRequest& request,
                            const std::function<Result<Plan>(const PlanRequest&)>& make,
                            Error refusal) {
  Result<Plan> least = make(ForMinPeak(request));
  if (!least.ok()) {
    // Some algorithms can't minimize the peak.
    return least.error().code == ErrorCode::kTimeout ? std::move(least).error() : refusal;
  }
  if (MemoryAttempts(step, request).Fits(*least)) return least;
  const Bytes enough =
      MinMemoryFor({step, request, Bytes(0)}, least->schedule, least->figures.peak);
  refusal.remedy = {"try", {{"memory", std::to_string(enough.count())}}};
  return refusal;
}

}  // namespace

MemoryAttempts::MemoryAttempts(const TrainingStep& step, const PlanRequest& request)
    : step_(step),
      request_(request),
      constants_(TotalConstants(step.constants(), OptimizerState(request, step.optimized()))) {}

bool MemoryAttempts::Fits(const Schedule& schedule, Bytes peak) const {
  return FitsMemory({step_, request_, Bytes(0)}, schedule, peak);
}

std::optional<PlanRequest> MemoryAttempts::After(const Plan* plan) {
  if (plan == nullptr) {
    if (!too_much_) return std::nullopt;  // Not even the whole memory has a plan.
    too_little_ = asked_;
  } else {
    too_much_ = plan->figures.peak;
  }
  const std::optional<Bytes> peak = too_little_ ? PeakBetween() : PeakAfter(*plan);
  if (!peak) return std::nullopt;
  asked_ = *peak;
  return RequestFor(*peak);
}

std::optional<Bytes> MemoryAttempts::PeakBetween() {
  if (attempts_between_ >= kAttemptsBetween) return std::nullopt;
  ++attempts_between_;
  const Bytes middle((too_little_->count() + too_much_->count()) / 2);
  if (middle <= *too_little_) return std::nullopt;
  return middle;
}

std::optional<Bytes> MemoryAttempts::PeakAfter(const Plan& plan) {
  const Bytes most = request_.memory.bytes - OutsideInMemory(request_);
  const Bytes excess = std::max(TensorsOf(step_, request_, plan) - most, Bytes(0));
  const Bytes peak = plan.figures.peak - excess;
  const bool has_gradients_to_arrive = ArrivingGradients(step_, request_) > Bytes(0);
  if (excess > Bytes(0) && has_gradients_to_arrive &&
      attempts_for_gradients_ < kAttemptsForGradients) {
    const bool is_last = ++attempts_for_gradients_ == kAttemptsForGradients;
    return is_last ? most - constants_ : std::max(peak, most - constants_);
  }
  if (attempts_for_allocator_ >= kAttemptsForAllocator) return std::nullopt;
  less_ = ++attempts_for_allocator_ == 1 ? Bytes(request_.memory.bytes.count() / kFirstPart)
                                         : 2 * less_;
  return peak - less_;
}

PlanRequest MemoryAttempts::RequestFor(Bytes peak) const {
  // The budget no longer covers memory outside of tensors.
  PlanRequest next = request_;
  next.memory = {};
  next.reserve.reset();
  next.total_budget = Budget::Of(peak + constants_);
  return next;
}

PlanRequest KeepAllRequest(PlanRequest request) {
  request.algorithm = "keep-all";
  request.effort = PlanRequest().effort;
  request.order = PlanRequest().order;
  request.memory = {};
  request.reserve.reset();
  return request;
}

Result<std::optional<Plan>> FindFallbackPlan(const TrainingStep& step, const PlanRequest& request,
                                             const SolveLimits& limits, PlanDetail detail) {
  using Found = std::optional<Plan>;
  constexpr Cost kAnyTime(std::numeric_limits<int64_t>::max() / 2);
  if (MinNeed(step, request) > request.memory.bytes) return Found();
  MemoryAttempts attempts(step, request);
  const PlanRequest keep_all = KeepAllRequest(request);
  CKPLAN_ASSIGN_OR_RETURN(const SolverInfo* info, FindSolver(keep_all.algorithm));
  Result<Plan> kept = MakePlanBy(*info, step, keep_all, limits);
  if (kept.ok() && attempts.Fits(*kept)) return Found(*std::move(kept));
  if (!kept.ok() && kept.error().code == ErrorCode::kTimeout) return std::move(kept).error();
  if (request.algorithm != kBestAlgorithm) return Found();
  PlanRequest quick = request;
  quick.effort = SearchEffort::kQuick;
  BestUntil search(quick, kAnyTime, limits);
  for (std::optional<PlanRequest> next = quick; next;) {
    CKPLAN_ASSIGN_OR_RETURN(PlanWithin found,
                            FindBestPlanWithin(step, *next, &search, SearchDepth::kWhole, detail));
    if (found.plan && attempts.Fits(*found.plan)) return std::move(found.plan);
    next = attempts.After(found.plan ? &*found.plan : nullptr);
    if (next) next->effort = SearchEffort::kQuick;
  }
  return ReadFastestPlan(step, quick, kAnyTime, limits, detail);
}

Result<PlanWithin> ReadPlanWithinMemory(const TrainingStep& step, const PlanRequest& request,
                                        Cost enough, const SolveLimits& limits, PlanDetail detail) {
  BestUntil search(request, enough, limits);
  const auto read = [&](const PlanRequest& asked) {
    return FindBestPlanWithin(step, asked, &search, SearchDepth::kCurve, detail);
  };
  CKPLAN_ASSIGN_OR_RETURN(PlanWithin found, read(request));
  if (!found.plan) return PlanWithin();
  const MemoryAttempts attempts(step, request);
  if (attempts.Fits(*found.plan)) return found;
  CKPLAN_ASSIGN_OR_RETURN(const std::optional<Bytes> peak,
                          search.PeakThatFits(request.memory.bytes - CoveredByBudget(step, request),
                                              [&](const Schedule& schedule, Bytes bytes) {
                                                return attempts.Fits(schedule, bytes);
                                              }));
  if (!peak) return PlanWithin{std::nullopt, found.least_found};
  return read(attempts.RequestFor(*peak));
}

Result<Plan> PlanWithinMemory(const TrainingStep& step, const PlanRequest& request,
                              const SolveLimits& limits,
                              const std::function<Result<Plan>(const PlanRequest&)>& make) {
  const Bytes least_need = MinNeed(step, request);
  if (least_need > request.memory.bytes) {
    return LeastOrRefusal(step, request, make, OptimizerNeedsMore(least_need, request));
  }
  Result<Plan> plan = make(request);
  const bool is_refused = !plan.ok() && plan.error().code == ErrorCode::kInfeasible;
  // Even if the allocator wastes nothing, no plan fits, and the error names enough memory. Every
  // other attempt would be a part of this search.
  if (is_refused && request.algorithm == kBestAlgorithm && !step.is_joint()) return plan;
  plan = FirstThatFits(step, request, limits, make, std::move(plan));
  if (plan.ok() || plan.error().code != ErrorCode::kInfeasible) return plan;
  CKPLAN_ASSIGN_OR_RETURN(std::optional<Plan> sure, FindFallbackPlan(step, request, limits));
  if (sure) return *std::move(sure);
  return LeastOrRefusal(step, request, make, std::move(plan).error());
}

}  // namespace ckplan
