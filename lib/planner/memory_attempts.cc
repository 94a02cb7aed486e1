#include "lib/planner/memory_attempts.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "lib/base/human_bytes.h"
#include "lib/plan/accounting.h"
#include "lib/plan/caching_allocator.h"
#include "lib/plan/outside.h"
#include "lib/planner/peak_budget.h"

namespace ckplan {
namespace {

constexpr int kMostAttempts = 8;
// The second attempt leaves the allocator this part of the memory, and each later one twice as much
// as the one before.
constexpr int64_t kFirstPart = 256;
// Halvings of the range in which the least memory of a plan is sought.
constexpr int kSizesTried = 10;

std::string BytesText(Bytes bytes) {
  return fmt::format("{} ({} bytes)", HumanBytes(bytes), bytes.count());
}

Bytes NeedOf(const TrainingStep& step, const PlanRequest& request, const Plan& plan) {
  return AccountFor({step, request, Bytes(0)}, plan.schedule, plan.figures.peak).need();
}

// Returns the size of a memory, as programs get it, that holds the plan. The allocator gives back
// what it can where memory ends, so the least such size is sought.
Bytes EnoughFor(const TrainingStep& step, PlanRequest request, const Plan& plan) {
  request.memory = Budget::Of(CachingAllocator::kNoLimit);
  const Bytes most = NeedOf(step, request, plan);
  Bytes enough = most;
  Bytes too_little = std::min(LeastNeed(step, request), most);
  for (int i = 0; i < kSizesTried; ++i) {
    const Bytes middle((too_little.count() + enough.count()) / 2);
    request.memory.bytes = middle;
    (NeedOf(step, request, plan) <= middle ? enough : too_little) = middle;
  }
  return enough;
}

// The optimizer's step may need more than any backward pass.
Error OptimizerNeedsMore(Bytes least, const PlanRequest& request) {
  return MakeError(
      ErrorCode::kInfeasible,
      fmt::format("infeasible: training needs {} or more whatever the plan, for the "
                  "step of the optimizer {}; the memory is {}",
                  BytesText(least), NameOf(request.optimizer), BytesText(request.memory.bytes)));
}

Error AllocatorNeedsMore(Bytes need, const PlanRequest& request) {
  return MakeError(ErrorCode::kInfeasible,
                   fmt::format("infeasible: no plan was found that fits {} together with what "
                               "PyTorch's allocator wastes; the last one tried needs {}",
                               BytesText(request.memory.bytes), BytesText(need)));
}

PlanRequest ForLeastPeak(PlanRequest request) {
  request.memory = {};
  request.reserve.reset();
  request.budget.kind = Budget::Kind::kMin;
  return request;
}

}  // namespace

bool MemoryAttempts::Fits(const Plan& plan) const {
  return NeedOf(step_, request_, plan) <= request_.memory.bytes;
}

std::optional<PlanRequest> MemoryAttempts::After(const Plan& plan) {
  if (attempts_ >= kMostAttempts) return std::nullopt;
  less_ = ++attempts_ == 2 ? Bytes(request_.memory.bytes.count() / kFirstPart) : 2 * less_;
  // The budget no longer covers what is outside of tensors.
  const Bytes most = request_.memory.bytes - OutsideInMemory(request_);
  const Bytes constants = CoveredByBudget(step_, request_) - OutsideInMemory(request_);
  PlanRequest next = request_;
  next.memory = {};
  next.reserve.reset();
  next.total_budget = Budget::Of(std::min(most, plan.figures.peak + constants) - less_);
  return next;
}

Result<Plan> PlanWithinMemory(const TrainingStep& step, const PlanRequest& request,
                              const std::function<Result<Plan>(const PlanRequest&)>& make) {
  MemoryAttempts attempts(step, request);
  const Bytes least_need = LeastNeed(step, request);
  Result<Plan> plan = least_need > request.memory.bytes
                          ? Result<Plan>(OptimizerNeedsMore(least_need, request))
                          : make(request);
  while (plan.ok() && !attempts.Fits(*plan)) {
    const Bytes need = NeedOf(step, request, *plan);
    const std::optional<PlanRequest> next = attempts.After(*plan);
    if (next) plan = make(*next);
    const bool is_over = !next || (!plan.ok() && plan.error().code == ErrorCode::kInfeasible);
    if (is_over) plan = AllocatorNeedsMore(need, request);
  }
  if (plan.ok() || plan.error().code != ErrorCode::kInfeasible) return plan;
  Error refusal = std::move(plan).error();
  Result<Plan> least = make(ForLeastPeak(request));
  if (!least.ok()) {
    // Not every algorithm can be asked for its least peak.
    return least.error().code == ErrorCode::kTimeout ? std::move(least).error() : refusal;
  }
  if (attempts.Fits(*least)) return least;
  const Bytes enough = EnoughFor(step, request, *least);
  refusal.remedy = {"try", {{"memory", std::to_string(enough.count())}}};
  return refusal;
}

}  // namespace ckplan
