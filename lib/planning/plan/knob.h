// An algorithm's knob is the number that trades memory for time, such as Kusumoto's budget B of Eq.
// 2 or Chen's number of segments. Each algorithm has at most one. Users set it by name: `--knob
// segments=5`. Otherwise the planner searches for a setting or uses the paper's.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ckplan {

// A setting of an algorithm's knob, such as 5 segments.
struct KnobSetting {
  std::string knob;  // Its name: "segments".
  int64_t value = 0;

  bool operator==(const KnobSetting&) const = default;
};

// A knob and its useful settings, from min to max inclusive.
struct Knob {
  enum class Kind {
    kNone,             // There is only one plan.
    kPaperBudget,      // Bytes of the paper's objective; plans exist from `min` upwards.
    kSegmentCount,     // How many segments the graph is cut into.
    kLargestSegment,   // Bytes that a segment may hold; plans exist from `min` upwards.
    kSegmentBudget,    // Bytes that a segment may hold (Chen's B): the smaller, the more is kept.
    kGridPoint,        // Index of a point in the paper's own grid of settings.
    kResultsPerLevel,  // Number of results that each level of a recursion keeps.
    // Bytes of the peak itself: the plan's peak does not exceed the setting. `min` is a lower bound
    // for all plans. The plan at `min` has the lowest peak, which may exceed `min`.
    kPeakLimit,
    kSavedShare,  // Percentage of saved tensors among those that could be saved.
  };
  Kind kind = Kind::kNone;
  int64_t min = 0;
  int64_t max = 0;
  int64_t preset = 0;  // The paper's setting, used without a budget.
  // Each setting that a search tries exceeds the one before by one part in `grid_steps`. Fast
  // solvers use more steps.
  int64_t grid_steps = 4;
};

// The name and unit of a knob, for messages and for users to type.
struct KnobInfo {
  Knob::Kind kind = Knob::Kind::kNone;
  std::string_view name;     // "segments", or the paper's name, if any.
  bool is_bytes = false;     // The setting is in bytes.
  std::string_view meaning;  // "number of segments"
  std::string_view range;    // Describes the settings that users can choose.
};

// Null for kNone.
const KnobInfo* InfoOf(Knob::Kind kind);
// All names without repetition. Knobs with the same name have the same unit.
std::vector<std::string_view> KnobNames();
bool IsInBytes(std::string_view knob_name);

// True if users can choose this setting. Sizes have no upper limit: above `max` they change
// nothing.
bool IsInRange(const Knob& knob, int64_t value);
// "1 to 7", "1048576 bytes (1.00 MiB) or more"
std::string RangeText(const Knob& knob);

// "segments=5", "B=1048576"
std::string TextOf(const KnobSetting& setting);

}  // namespace ckplan
