// Balances memory against time: the best plan has the smallest product of memory and step time.
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
  Cost step;        // Cost of a step without recomputation.
  Bytes constants;  // Added to every peak: memory in the budget other than activations.

  // True if `a` has the smaller product; if both are equal, if it has the lower peak.
  bool IsBetter(const CurvePoint& a, const CurvePoint& b) const;

  // Returns the best point of a non-empty front (FrontOf).
  CurvePoint BestOf(std::span<const CurvePoint> front) const;

  // Returns budgets halfway between the best point of a front and each neighbour. Plans for these
  // budgets may be better still.
  std::vector<Bytes> BudgetsBesideBest(std::span<const CurvePoint> front) const;
};

}  // namespace ckplan
