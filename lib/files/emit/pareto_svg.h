// Draws curves of memory against time: a stepped line per curve and a mark per plan.
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

// Returns the start of an SVG picture: its size, the common styles for light and dark screens, and
// the background. `light` and `dark` are further CSS rules that end with a line feed; on dark
// screens, `dark` overrides `light`. The caller appends "</svg>".
std::string SvgPage(int64_t width, int64_t height, std::string_view light, std::string_view dark);

struct ParetoLine {
  std::string name;  // For example "best, N=64".
  Bytes baseline_peak;
  Cost step;
  std::vector<CurvePoint> points;  // Sorted by rising peak; may be empty.
};

std::string WriteParetoSvg(const std::string& title, std::span<const ParetoLine> lines);

}  // namespace ckplan
