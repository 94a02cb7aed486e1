// Points on a curve of memory against time.
#pragma once

#include <optional>
#include <vector>

#include "lib/base/units.h"

namespace ckplan {

// The peak and the overhead of one plan.
struct CurvePoint {
  Bytes peak;
  Cost overhead;
  // A proven lower bound on the peak of plans in the model's own order that add at most this. Empty
  // if unknown, or if the plan uses another order and is below the bound.
  std::optional<Bytes> least_peak = std::nullopt;

  // Compares points without their bounds.
  bool operator==(const CurvePoint& other) const {
    return peak == other.peak && overhead == other.overhead;
  }
};

// The overhead of two curves within the same peak; nullopt if a curve has no plan within it.
struct CurveChange {
  Bytes peak;
  std::optional<Cost> older;
  std::optional<Cost> newer;
};

// Returns a row for each peak on either curve, by increasing peak. Both must be Pareto fronts.
std::vector<CurveChange> CompareCurves(const std::vector<CurvePoint>& older,
                                       const std::vector<CurvePoint>& newer);

// Returns the Pareto front by increasing peak.
std::vector<CurvePoint> FrontOf(std::vector<CurvePoint> points);

}  // namespace ckplan
