#include "lib/planning/plan/added_time.h"

#include <algorithm>
#include <cmath>

namespace ckplan {

Cost MostAdded(double percent, Cost step) {
  return Cost(static_cast<int64_t>(std::floor(static_cast<double>(step.count()) * percent / 100)));
}

const CurvePoint& MinPeakWithin(std::span<const CurvePoint> front, Cost most) {
  const auto first = std::find_if(front.begin(), front.end(), [most](const CurvePoint& point) {
    return point.overhead <= most;
  });
  return first == front.end() ? front.back() : *first;
}

std::vector<CurvePoint> ShownPoints(std::span<const CurvePoint> front, Cost step) {
  std::vector<CurvePoint> shown;
  if (front.empty()) return shown;
  shown = {front.front(), front.back()};
  for (const double percent : kShownAddedPercents) {
    shown.push_back(MinPeakWithin(front, MostAdded(percent, step)));
  }
  return FrontOf(std::move(shown));
}

}  // namespace ckplan
