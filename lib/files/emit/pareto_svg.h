// Draws curves of memory against time: a line of steps for each curve, and a mark for each plan.
// The picture needs no script, font or network, has colours for light and dark screens that
// colour-blind readers can distinguish, and marks of different shapes. Coordinates are whole
// pixels, so that the same curves give the same bytes everywhere.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/units.h"
#include "lib/planning/plan/plan.h"

namespace ckplan {

// The beginning that our pictures share: the size, the common styles for light and dark screens,
// and the background. The pictures need no script, font or network.

// `light` and `dark` are further CSS rules, each with a line feed at its end; those for dark
// screens override the light ones. The caller writes the end of the page.
std::string SvgPage(int64_t width, int64_t height, std::string_view light, std::string_view dark);

struct ParetoLine {
  std::string name;  // For example "best, N=64".
  Bytes baseline_peak;
  Cost step;
  std::vector<CurvePoint> points;  // Sorted by rising peak; may be empty.
};

std::string WriteParetoSvg(const std::string& title, std::span<const ParetoLine> lines);

}  // namespace ckplan
