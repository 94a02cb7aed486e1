// Curves of memory against time as a picture: a line of steps for each, and a mark at each plan. It
// needs no script, font or network, has colours for light and for dark screens that colour-blind
// readers tell apart, and marks of different shapes. Coordinates are whole pixels, so that the same
// curves give the same bytes everywhere.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "lib/base/units.h"
#include "lib/plan/plan.h"

namespace ckplan {

struct ParetoLine {
  std::string name;  // "best, N=64"
  Bytes baseline_peak;
  Cost step;
  std::vector<CurvePoint> points;  // By increasing peak; may be empty.
};

std::string WriteParetoSvg(const std::string& title, std::span<const ParetoLine> lines);

}  // namespace ckplan
