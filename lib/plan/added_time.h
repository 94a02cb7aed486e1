// What plans may add to a step, and which plan of a curve is chosen by it.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "lib/base/units.h"
#include "lib/plan/plan.h"

namespace ckplan {

// The most that a plan without a budget adds, in percent of a step without recomputation, unless
// every plan that obeys its constraints adds more.
inline constexpr double kAddedPercentWithoutBudget = 10;

// The points shown of the curve that the plan is chosen from: the least peak for each of these
// percentages, beside the least peak of all and the peak of the fastest plan.
inline constexpr std::array kShownAddedPercents = {1.0, 5.0, 10.0, 20.0};

// The most that may be added to a step.
Cost MostAdded(double percent, Cost step);

// The point of the least peak that adds no more, on a curve (FrontOf) that is not empty; if every
// point adds more, the point of the least time.
const CurvePoint& LeastPeakWithin(std::span<const CurvePoint> front, Cost most);

// The points of a curve that are shown: see kShownAddedPercents.
std::vector<CurvePoint> ShownPoints(std::span<const CurvePoint> front, Cost step);

}  // namespace ckplan
