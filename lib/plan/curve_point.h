// Points of a curve of memory against time.
#pragma once

#include <vector>

#include "lib/base/units.h"

namespace ckplan {

// A point on a curve of memory against time: the peak and the overhead of one plan.
struct CurvePoint {
  Bytes peak;
  Cost overhead;

  bool operator==(const CurvePoint&) const = default;
};

// Returns the Pareto front by increasing peak.
std::vector<CurvePoint> FrontOf(std::vector<CurvePoint> points);

}  // namespace ckplan
