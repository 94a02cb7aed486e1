// Every algorithm has at most one number that trades memory for time, such as Kusumoto's budget B
// of Eq. 2 or Chen's number of segments. That number is its knob, which users set by name: `--knob
// segments=5`. Without a setting, the planner searches for one or takes the paper's.
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

// The meaning of the knob and its useful settings, from min to max inclusive.
struct Knob {
  enum class Kind {
    kNone,             // There is only one plan.
    kPaperBudget,      // Bytes of the paper's own objective; plans exist from `min` upwards.
    kSegmentCount,     // How many segments the graph is cut into.
    kLargestSegment,   // Bytes that a segment may hold; plans exist from `min` upwards.
    kSegmentBudget,    // Bytes that a segment may hold (Chen's B): the smaller, the more is kept.
    kGridPoint,        // Index of a point in the paper's own grid of settings.
    kResultsPerLevel,  // Number of results that each level of a recursion keeps.
    // Bytes of the peak itself: the plan at a setting needs no more. `min` is a lower bound for all
    // plans, and the plan at `min` has the least peak, which may be above it.
    kPeakLimit,
    kSavedShare,  // How much is saved for backward, in percent of what could be.
  };
  Kind kind = Kind::kNone;
  int64_t min = 0;
  int64_t max = 0;
  int64_t preset = 0;  // The setting that the paper chooses; used if no budget is given.
  // A search tries settings that each exceed the one before by one part in `grid_steps`. Solvers
  // that solve a setting quickly use more steps.
  int64_t grid_steps = 4;
};

// The name and unit of a knob, for messages and for users to type.
struct KnobInfo {
  Knob::Kind kind = Knob::Kind::kNone;
  std::string_view name;     // "segments", as the paper calls it where it has a name.
  bool is_bytes = false;     // A number of bytes; else a plain number.
  std::string_view meaning;  // "number of segments"
  std::string_view range;    // The settings that can be asked for, in words.
};

// Null for kNone.
const KnobInfo* InfoOf(Knob::Kind kind);
// All names, each once. Knobs of the same name have the same unit.
std::vector<std::string_view> KnobNames();
bool IsInBytes(std::string_view knob_name);

// Whether users may ask for the setting. Sizes have no upper end: above `max` they change nothing.
bool IsInRange(const Knob& knob, int64_t value);
// "1 to 7", "1048576 bytes (1.00 MiB) or more"
std::string RangeText(const Knob& knob);

// "segments=5", "B=1048576"
std::string TextOf(const KnobSetting& setting);

}  // namespace ckplan
