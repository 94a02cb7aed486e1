#include "lib/planning/plan/knob.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "lib/base/text.h"

namespace ckplan {
namespace {

using Kind = Knob::Kind;

constexpr std::array kKnobs = {
    KnobInfo{Kind::kPaperBudget, "B", true, "budget of Eq. 2; also --paper-budget",
             "from the least that has a plan"},
    KnobInfo{Kind::kSegmentCount, "segments", false, "number of segments",
             "1 to the number of vertices to cut at"},
    KnobInfo{Kind::kLargestSegment, "C", true, "limit on a segment",
             "from the largest part that cannot be divided"},
    KnobInfo{Kind::kSegmentBudget, "B", true, "size at which a segment ends; also --paper-budget",
             "from 0"},
    KnobInfo{Kind::kGridPoint, "point", false,
             "choice of B: 1 is sqrt(x y), 2 to 7 the grid around it", "1 to 7"},
    KnobInfo{Kind::kResultsPerLevel, "k", false, "results kept on each level",
             "1 to the number of cuts between blocks"},
    KnobInfo{Kind::kPeakLimit, "B", true, "limit on the peak",
             "from the least peak that is reached"},
    KnobInfo{Kind::kSavedShare, "saved", false, "percentage of backward's inputs that may be saved",
             "0 to 100"},
};

}  // namespace

const KnobInfo* InfoOf(Knob::Kind kind) {
  const auto* const found = std::find_if(kKnobs.begin(), kKnobs.end(),
                                         [&](const KnobInfo& info) { return info.kind == kind; });
  return found == kKnobs.end() ? nullptr : found;
}

std::vector<std::string_view> KnobNames() {
  std::vector<std::string_view> names;
  for (const KnobInfo& info : kKnobs) {
    if (std::count(names.begin(), names.end(), info.name) == 0) names.push_back(info.name);
  }
  return names;
}

bool IsInBytes(std::string_view knob_name) {
  return std::any_of(kKnobs.begin(), kKnobs.end(),
                     [&](const KnobInfo& info) { return info.name == knob_name && info.is_bytes; });
}

bool IsInRange(const Knob& knob, int64_t value) {
  const bool is_bytes = InfoOf(knob.kind)->is_bytes;
  return value >= knob.min && (is_bytes || value <= knob.max);
}

std::string RangeText(const Knob& knob) {
  if (!InfoOf(knob.kind)->is_bytes) return fmt::format("{} to {}", knob.min, knob.max);
  return fmt::format("{} bytes ({}) or more", knob.min, HumanBytes(Bytes(knob.min)));
}

std::string TextOf(const KnobSetting& setting) {
  return fmt::format("{}={}", setting.knob, setting.value);
}

}  // namespace ckplan
