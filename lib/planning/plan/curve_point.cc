#include "lib/planning/plan/curve_point.h"

#include <algorithm>
#include <utility>

namespace ckplan {

std::vector<CurvePoint> FrontOf(std::vector<CurvePoint> points) {
  std::sort(points.begin(), points.end(), [](const CurvePoint& a, const CurvePoint& b) {
    return std::pair(a.peak, a.overhead) < std::pair(b.peak, b.overhead);
  });
  std::vector<CurvePoint> front;
  for (const CurvePoint& point : points) {
    if (front.empty() || point.overhead < front.back().overhead) front.push_back(point);
  }
  return front;
}

}  // namespace ckplan
