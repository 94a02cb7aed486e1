// One row of a fit (fit.h): the largest size with a plan that adds at most so much time.
#pragma once

#include <cstdint>
#include <optional>

#include "lib/base/result.h"
#include "lib/base/units.h"
#include "lib/plan/plan.h"
#include "lib/plan/solver.h"
#include "lib/planner/sized_models.h"

namespace ckplan {

struct FitPlan {
  int64_t count = 0;  // Of what SizedModels counts.
  Plan plan;
};

// What a plan of a row may take: the memory for all that a step holds, and the added time in
// percent of a step without recomputation.
struct FitAllowance {
  Bytes memory;
  double added_percent = 0;
};

// Of the sizes above that of `start`, which fits. The same request finds a plan of so much time at
// the count that is returned, and none at the next one. Nothing if none is found. Errors are those
// of reading the model and of the algorithm; stops are thrown (lib/base/stop.h).
Result<std::optional<FitPlan>> FindLargestPlan(SizedModels* models, const FitAllowance& allowance,
                                               int64_t start, const SolveLimits& limits);

}  // namespace ckplan
