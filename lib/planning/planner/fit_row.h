// Computes one row of a fit (fit.h): the largest size with a plan that adds at most a given time.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "lib/base/result.h"
#include "lib/base/units.h"
#include "lib/planning/plan/plan.h"
#include "lib/planning/plan/solver.h"
#include "lib/planning/planner/sized_models.h"

namespace ckplan {

// Larger sizes are found to within one part in this many, because finding the exact one would take
// too many searches.
inline constexpr int64_t kExactCount = 512;

struct FitPlan {
  int64_t count = 0;  // The size, counted as in SizedModels.
  // A larger size without a plan: the next one, if the size is at most kExactCount.
  int64_t next = 0;
  Plan plan;
};

// A row's limits: the device's memory, as in the models' request, and added time in percent of a
// step without recomputation.
struct FitAllowance {
  Bytes memory;
  double added_percent = 0;
  int64_t look_beyond = 0;  // SizeSearch::look_beyond.
  // Plans are first read off the curve of `best`, which is much faster than whole searches.
  bool has_curve = false;
  bool searches = true;  // From the largest size that the curve has, searches for larger ones.
};

// What the rows of one fit have found out about sizes, whatever time they may add.
struct TriedSizes {
  std::map<int64_t, std::optional<Cost>> bounds;  // SizedModel::Bound, by count.
  std::map<int64_t, bool> has_plan;               // HasPlan, by count.
};

// Returns the largest size above `start` for which `best` finds a plan within the allowance; it
// finds none for the next size tried. `start` fits, or is 0. Returns nothing if no larger size has
// a plan. Returns the errors of reading the model and of the algorithm; throws stops
// (lib/base/stop.h).
Result<std::optional<FitPlan>> FindLargestPlan(SizedModels* models, const FitAllowance& allowance,
                                               int64_t start, const SolveLimits& limits,
                                               TriedSizes* tried);

// Tells whether the search finds a plan for this size within the memory, with any added time.
// Returns the errors of FindLargestPlan.
Result<bool> HasPlan(SizedModels* models, int64_t count, const SolveLimits& limits);

}  // namespace ckplan
