// Points of a curve of memory against time.
#pragma once

#include <optional>
#include <vector>

#include "lib/base/units.h"

namespace ckplan {

// A point on a curve of memory against time: the peak and the overhead of one plan.
struct CurvePoint {
  Bytes peak;
  Cost overhead;
  // No plan in the model's own order of operations that adds at most this has a lower peak. Empty
  // if nothing is known, or if the plan is in another order and below that.
  std::optional<Bytes> least_peak = std::nullopt;

  // Whether they are the same point, whatever is known about it.
  bool operator==(const CurvePoint& other) const {
    return peak == other.peak && overhead == other.overhead;
  }
};

// What two curves add within the same peak; nothing where a curve has no plan within it.
struct CurveChange {
  Bytes peak;
  std::optional<Cost> older;
  std::optional<Cost> newer;
};

// Returns a row for each peak of either curve, by increasing peak. Both curves are Pareto fronts.
std::vector<CurveChange> CompareCurves(const std::vector<CurvePoint>& older,
                                       const std::vector<CurvePoint>& newer);

// Returns the Pareto front by increasing peak.
std::vector<CurvePoint> FrontOf(std::vector<CurvePoint> points);

}  // namespace ckplan
