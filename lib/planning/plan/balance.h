// The balance of memory and time: of several plans, it prefers the one whose product of memory and
// time of a step is least.
//
//   added time
//        |x          . - curves of equal products; the plan on the lowest of them is chosen
//        | .x
//        |    . <x>
//        |          .   x
//        +--------------------- peak
#pragma once

#include <span>
#include <vector>

#include "lib/base/units.h"
#include "lib/planning/plan/curve_point.h"

namespace ckplan {

struct Balance {
  Cost step;        // The cost of a step without recomputation.
  Bytes constants;  // Added to every peak: what the budget covers besides activations.

  // Returns whether `a` has the lesser product. Of equal products, the lower peak is better.
  bool IsBetter(const CurvePoint& a, const CurvePoint& b) const;

  // Returns the best point of a front (FrontOf) that is not empty.
  CurvePoint BestOf(std::span<const CurvePoint> front) const;

  // Returns the budgets in the middle of the gaps between the best point of a front and its
  // neighbours. Plans for these budgets may be better still.
  std::vector<Bytes> BudgetsBesideBest(std::span<const CurvePoint> front) const;
};

}  // namespace ckplan
