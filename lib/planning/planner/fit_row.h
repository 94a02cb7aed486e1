// Computes one row of a fit (fit.h): the largest size with a plan that adds at most a given time.
#pragma once

#include <cstdint>
#include <optional>

#include "lib/base/result.h"
#include "lib/base/units.h"
#include "lib/planning/plan/plan.h"
#include "lib/planning/plan/solver.h"
#include "lib/planning/planner/sized_models.h"

namespace ckplan {

// Larger sizes are found to within one part in this many, as the smallest difference between them
// would take as many searches as there are sizes.
inline constexpr int64_t kExactCount = 512;

struct FitPlan {
  int64_t count = 0;  // The size, counted as in SizedModels.
  // A larger size for which none is found. It is the next one, if the size is at most kExactCount.
  int64_t next = 0;
  Plan plan;
};

// What a plan of a row may need: the device's memory, which is that of the models' request, and
// added time in percent of a step without recomputation.
struct FitAllowance {
  Bytes memory;
  double added_percent = 0;
  int64_t look_beyond = 0;  // SizeSearch::look_beyond.
  // `best` plans, and can read plans off a curve: that takes a small part of its whole search.
  bool has_curve = false;
};

// Returns the largest size above `start` for which `best` finds a plan within the allowance; it
// finds none for the next size that it tries. `start` fits, or is 0. Returns nothing if no larger
// size is found.
// Errors are those of reading the model and of the algorithm; stops are thrown (lib/base/stop.h).
Result<std::optional<FitPlan>> FindLargestPlan(SizedModels* models, const FitAllowance& allowance,
                                               int64_t start, const SolveLimits& limits);

// Returns whether the search finds a plan of this size within the memory, whatever time it adds;
// for `best`, whether there is a fallback plan (memory_attempts.h). Errors are those of
// FindLargestPlan.
Result<bool> HasPlan(SizedModels* models, int64_t count, const SolveLimits& limits);

}  // namespace ckplan
