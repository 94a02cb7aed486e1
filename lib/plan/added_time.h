// What plans may add to a step, and which plan of a curve is chosen by it.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "lib/base/units.h"
#include "lib/plan/plan.h"

namespace ckplan {

// What a plan for no budget adds at most, in percent of a step without recomputation, unless
// everything that obeys its constraints adds more.
inline constexpr double kAddedPercentWithoutBudget = 10;

// What is shown of the curve that it is chosen from: the least peak with each of these, beside the
// least of all and that of the least time.
inline constexpr std::array kShownAddedPercents = {1.0, 5.0, 10.0, 20.0};

// The most that may be added to a step.
Cost MostAdded(double percent, Cost step);

// The point of the least peak that adds no more, on a curve (FrontOf) that is not empty; where none
// adds so little, the point of the least time.
const CurvePoint& LeastPeakWithin(std::span<const CurvePoint> front, Cost most);

// The points of a curve that are shown: see kShownAddedPercents.
std::vector<CurvePoint> ShownPoints(std::span<const CurvePoint> front, Cost step);

}  // namespace ckplan
