// Plans within the memory of a device. How many gradients have arrived where a plan needs the most,
// and what PyTorch's allocator needs besides tensors, is known only once there is a plan
// (lib/planning/plan/ accounting.h). So plans are sought within smaller and smaller budgets until
// one fits. The first budget is for a plan that peaks before any gradient arrives; then each is
// smaller by what the last plan needed too much, down to the budget that has room for all
// gradients; and then by more and more for the allocator. A budget that has no plan may be smaller
// than necessary, so the gap to the last plan that was too large is halved a few times.
//
// Whether one is found depends on the plans that are tried, and so on the effort and on the added
// time that ends a search. Commands must agree all the same: FindFallbackPlan depends on neither.
// The planner refuses a memory only if there is no such plan, and `fit` names only sizes that have
// one.
#pragma once

#include <functional>
#include <optional>

#include "lib/base/result.h"
#include "lib/base/units.h"
#include "lib/planning/plan/plan.h"
#include "lib/planning/plan/request.h"
#include "lib/planning/plan/solver.h"
#include "lib/planning/planner/planner.h"
#include "lib/problem/schedule/training_step.h"

namespace ckplan {

// The requests for which plans are sought, one after the other.
class MemoryAttempts {
 public:
  // The request must have a memory in bytes, and live as long as this.
  MemoryAttempts(const TrainingStep& step, const PlanRequest& request);

  // Whether training by the plan fits the memory with everything that it needs.
  bool Fits(const Plan& plan) const { return Fits(plan.schedule, plan.figures.peak); }
  bool Fits(const Schedule& schedule, Bytes peak) const;
  // Returns the request after a plan that does not fit, or after a request that has no plan (null).
  // Returns nothing if it is not worth another attempt.
  std::optional<PlanRequest> After(const Plan* plan);
  PlanRequest RequestFor(Bytes peak) const;

 private:
  // Returns the largest peak to ask for after a plan that does not fit.
  std::optional<Bytes> PeakAfter(const Plan& plan);
  std::optional<Bytes> PeakBetween();

  const TrainingStep step_;
  const PlanRequest& request_;
  const Bytes constants_;
  int attempts_for_gradients_ = 0;
  int attempts_for_allocator_ = 0;
  int attempts_between_ = 0;
  Bytes less_;
  Bytes asked_;                      // The peak of the last request.
  std::optional<Bytes> too_much_;    // The peak of the last plan that does not fit.
  std::optional<Bytes> too_little_;  // The peak of the last request that has no plan.
};

// Returns the request for the plan that keeps all that the constraints allow.
PlanRequest KeepAllRequest(PlanRequest request);

// Returns the plan of keeping everything, if it fits. With the algorithm `best`, otherwise returns
// the first plan that it finds with quick effort, whatever time it adds, for the memory or for a
// smaller budget. Returns nothing if none of these fits. kTimeout: stopped.
Result<std::optional<Plan>> FindFallbackPlan(const TrainingStep& step, const PlanRequest& request,
                                             const SolveLimits& limits,
                                             PlanDetail detail = PlanDetail::kWhole);

// Returns the first plan by `make` that fits the request's memory, trying smaller and smaller
// budgets, or else the plan of FindFallbackPlan. kInfeasible: neither fits; the remedy is a memory
// for which a plan exists.
Result<Plan> PlanWithinMemory(const TrainingStep& step, const PlanRequest& request,
                              const SolveLimits& limits,
                              const std::function<Result<Plan>(const PlanRequest&)>& make);

}  // namespace ckplan
