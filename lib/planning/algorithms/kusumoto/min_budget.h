// The least budget of Eq. 2 (Kusumoto et al. 2019) that some sequence of lower sets fits.
#pragma once

#include <optional>

#include "lib/base/result.h"
#include "lib/base/units.h"
#include "lib/planning/algorithms/kusumoto/fitting_segments.h"
#include "lib/planning/algorithms/kusumoto/lower_sets.h"
#include "lib/planning/algorithms/kusumoto/set_workers.h"

namespace ckplan {

struct LeastBudget {
  Bytes budget;
  // The sets that can be passed within that budget, if the search found them.
  std::optional<FittingSegments::Passable> passable;
};

// `known` is a budget that is known to be feasible, such as that of a smaller family; the search is
// faster the nearer it is. Errors are those of the workers.
Result<LeastBudget> FindMinBudget(const LowerSetFamily& family, std::optional<Bytes> known,
                                  SetWorkers* workers);

}  // namespace ckplan
