// Plans within the memory of a device. PyTorch's allocator may need more than the tensors of a
// plan, by how much is known only once there is a plan (lib/plan/accounting.h). So plans are sought
// within smaller and smaller budgets until one fits with the allocator.
#pragma once

#include <functional>
#include <optional>

#include "lib/base/result.h"
#include "lib/base/units.h"
#include "lib/plan/plan.h"
#include "lib/plan/request.h"
#include "lib/schedule/training_step.h"

namespace ckplan {

// The requests for which plans are sought, one after the other.
class MemoryAttempts {
 public:
  // The request must have a memory in bytes, and live as long as this.
  MemoryAttempts(const TrainingStep& step, const PlanRequest& request)
      : step_(step), request_(request) {}

  // Whether training by the plan fits the memory with everything that it needs.
  bool Fits(const Plan& plan) const;
  // Returns the request after a plan that does not fit; nothing if it is not worth another attempt.
  std::optional<PlanRequest> After(const Plan& plan);

 private:
  const TrainingStep step_;
  const PlanRequest& request_;
  int attempts_ = 1;
  Bytes less_;
};

// Returns the plan that `make` makes for the request or, if that does not fit, for a smaller
// budget. kInfeasible: no plan fits the request's memory.
Result<Plan> PlanWithinMemory(const TrainingStep& step, const PlanRequest& request,
                              const std::function<Result<Plan>(const PlanRequest&)>& make);

}  // namespace ckplan
