// Plans within the memory of a device. How many gradients have arrived where a plan needs the most,
// and what PyTorch's allocator needs besides tensors, is only known for a finished plan
// (lib/planning/plan/accounting.h). So the planner tries smaller and smaller budgets until a plan
// fits. The first budget is for a plan that peaks before any gradient arrives. Each next one is
// smaller by the last plan's excess, down to the budget with room for all gradients, and then by
// more and more for the allocator. A budget without a plan may be smaller than necessary, so the
// gap to the last plan that was too large is bisected a few times.
//
// Whether a plan is found depends on the plans tried, and so on the effort and on the added time
// that ends a search. Commands must still agree, so FindFallbackPlan depends on neither. The
// planner rejects a memory only if no such plan exists, and `fit` reports only sizes that have one.
#pragma once

#include <functional>
#include <optional>

#include "lib/base/result.h"
#include "lib/base/units.h"
#include "lib/planning/plan/plan.h"
#include "lib/planning/plan/request.h"
#include "lib/planning/plan/solver.h"
#include "lib/planning/planner/one_algorithm.h"
#include "lib/problem/schedule/training_step.h"

namespace ckplan {

// The sequence of requests to try.
class MemoryAttempts {
 public:
  // The request must have a memory in bytes, and live as long as this.
  MemoryAttempts(const TrainingStep& step, const PlanRequest& request);

  // Tells whether training with the plan fits the memory, with everything that it needs.
  bool Fits(const Plan& plan) const { return Fits(plan.schedule, plan.figures.peak); }
  bool Fits(const Schedule& schedule, Bytes peak) const;
  // Returns the next request after a plan that doesn't fit, or after a request without a plan
  // (null). Returns nothing if another attempt isn't worthwhile.
  std::optional<PlanRequest> After(const Plan* plan);
  PlanRequest RequestFor(Bytes peak) const;

 private:
  // Returns the largest peak to request after a plan that doesn't fit.
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
  std::optional<Bytes> too_much_;    // The peak of the last plan that doesn't fit.
  std::optional<Bytes> too_little_;  // The peak of the last request without a plan.
};

// Returns the request for the plan that keeps all that the constraints allow.
PlanRequest KeepAllRequest(PlanRequest request);

// Returns the keep-all plan if it fits. Otherwise, with the algorithm `best`, returns the first
// plan that it finds with quick effort and any added time, for the memory or a smaller budget, or
// one of ReadPlanWithinMemory. Returns nothing if none fits. kTimeout: stopped.
Result<std::optional<Plan>> FindFallbackPlan(const TrainingStep& step, const PlanRequest& request,
                                             const SolveLimits& limits,
                                             PlanDetail detail = PlanDetail::kWhole);

// Returns a plan that adds at most `enough` and fits the request's memory, read off the curve of
// `best`. The step and the request must have one curve (HasOneCurve). If the curve has no such plan
// even without the allocator, `least_found` is empty.
Result<PlanWithin> ReadPlanWithinMemory(const TrainingStep& step, const PlanRequest& request,
                                        Cost enough, const SolveLimits& limits, PlanDetail detail);

// Returns the first plan from `make` that fits the request's memory, trying smaller and smaller
// budgets. If that takes several attempts and the curve of `best` has a faster plan that fits,
// returns that one. Without any, returns the plan of FindFallbackPlan. kInfeasible: neither fits;
// the remedy is a memory for which a plan exists.
Result<Plan> PlanWithinMemory(const TrainingStep& step, const PlanRequest& request,
                              const SolveLimits& limits,
                              const std::function<Result<Plan>(const PlanRequest&)>& make);

}  // namespace ckplan
