// Draws curves of memory against time: a line of steps for each curve, and a mark for each plan.
// The picture needs no script, font or network, has colours for light and dark screens that
// colour-blind readers can distinguish, and marks of different shapes. Coordinates are whole
// pixels, so that the same curves give the same bytes everywhere.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "lib/base/units.h"
#include "lib/planning/plan/plan.h"

namespace ckplan {

struct ParetoLine {
  std::string name;  // For example "best, N=64".
  Bytes baseline_peak;
  Cost step;
  std::vector<CurvePoint> points;  // Sorted by rising peak; may be empty.
};

std::string WriteParetoSvg(const std::string& title, std::span<const ParetoLine> lines);

}  // namespace ckplan
