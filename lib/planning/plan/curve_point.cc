#include "lib/planning/plan/curve_point.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace ckplan {
namespace {

// Returns the overhead of the last point whose peak is at most `peak`.
std::optional<Cost> AddedCostWithin(const std::vector<CurvePoint>& curve, Bytes peak) {
  const auto above =
      std::upper_bound(curve.begin(), curve.end(), peak,
                       [](Bytes limit, const CurvePoint& point) { return limit < point.peak; });
  if (above == curve.begin()) return std::nullopt;
  return std::prev(above)->overhead;
}

}  // namespace

std::vector<CurveChange> CompareCurves(const std::vector<CurvePoint>& older,
                                       const std::vector<CurvePoint>& newer) {
  std::vector<Bytes> peaks;
  for (const auto* const curve : {&older, &newer}) {
    for (const CurvePoint& point : *curve) peaks.push_back(point.peak);
  }
  std::sort(peaks.begin(), peaks.end());
  peaks.erase(std::unique(peaks.begin(), peaks.end()), peaks.end());
  std::vector<CurveChange> changes;
  for (const Bytes peak : peaks) {
    changes.push_back({peak, AddedCostWithin(older, peak), AddedCostWithin(newer, peak)});
  }
  return changes;
}

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
