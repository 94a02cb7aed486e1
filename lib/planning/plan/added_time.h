// How much time plans may add to a step, and the choice of a plan from a curve by added time.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "lib/base/units.h"
#include "lib/planning/plan/plan.h"

namespace ckplan {

// The most that a plan without a budget adds, in percent of a step without recomputation, unless
// every plan under the same constraints adds more.
inline constexpr double kAddedPercentWithoutBudget = 10;

// The largest percentage that users may request.
inline constexpr double kLargestAddedPercent = 1000;

// Percentages of added time that summaries show: the lowest peak for each, plus the lowest peak of
// all and the fastest plan.
inline constexpr std::array kShownAddedPercents = {1.0, 5.0, 10.0, 20.0};

// The most time that may be added to a step.
Cost MostAdded(double percent, Cost step);

// Returns the point with the lowest peak that adds at most this, or the fastest point if all add
// more. `front` is a non-empty result of FrontOf.
const CurvePoint& MinPeakWithin(std::span<const CurvePoint> front, Cost most);

// Returns the points of a curve to show: see kShownAddedPercents.
std::vector<CurvePoint> ShownPoints(std::span<const CurvePoint> front, Cost step);

}  // namespace ckplan
