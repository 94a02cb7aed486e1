// The time that plans may add to a step, and the choice of a plan from a curve by this time.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "lib/base/units.h"
#include "lib/planning/plan/plan.h"

namespace ckplan {

// The most that a plan without a budget adds, in percent of a step without recomputation, unless
// every plan that obeys its constraints adds more.
inline constexpr double kAddedPercentWithoutBudget = 10;

// The largest percentage of a step that may be asked for.
inline constexpr double kLargestAddedPercent = 1000;

// The points that are shown of the curve from which the plan is chosen: the least peak for each of
// these percentages, besides the least peak of all and the peak of the fastest plan.
inline constexpr std::array kShownAddedPercents = {1.0, 5.0, 10.0, 20.0};

// The most that may be added to a step.
Cost MostAdded(double percent, Cost step);

// The point of the least peak that adds no more, on a curve (FrontOf) that is not empty; if every
// point adds more, the point of the least time.
const CurvePoint& MinPeakWithin(std::span<const CurvePoint> front, Cost most);

// The points of a curve that are shown: see kShownAddedPercents.
std::vector<CurvePoint> ShownPoints(std::span<const CurvePoint> front, Cost step);

}  // namespace ckplan
