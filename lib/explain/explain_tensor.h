// Why a plan keeps a tensor, or recomputes it: what changes if it did the other.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "lib/base/units.h"
#include "lib/explain/traced_plan.h"

namespace ckplan {

// A time in memory: from the step that makes it to the last that needs it.
struct Stay {
  MemoryKind kind = MemoryKind::kKept;
  int32_t since = 0;
  int32_t until = 0;
  std::vector<int32_t> reads;  // Of it and its aliases, ascending, each once.
  bool is_at_peak = false;
  int32_t version = -1;  // Of the timeline.
};

// What decides about a tensor in the plan as it is, as far as one change tells.
enum class Reason : uint8_t {
  kGiven,          // It is there from outside, or is counted with the constants.
  kEmpty,          // It has no bytes.
  kNeverMade,      // No result needs it.
  kUsedAtOnce,     // There is no step between two uses at which it could be released.
  kMustNotRepeat,  // To release it, something would run twice that must not.
  // A constraint of the plan decides: the request's field
  kToBeKept,        // keep
  kToRunOnce,       // never_rerun
  kToBeRecomputed,  // recompute
  kNotMeasured,     // The plan does not free by liveness, or too much was asked for at once.
  // Kept, and running it again instead
  kElsewhere,   // would not lower the peak: it is not in memory there, or another step needs as
                // much.
  kRaisesPeak,  // would raise the peak, for what must then be in memory at once.
  kInBudget,    // would lower the peak, at some time; the budget is kept without it.
  kTraded,      // would lower the peak, at some time; the plan has no budget.
  // Run again, and keeping it instead
  kOverBudget,  // would need more than the budget,
  kHigherPeak,  // would raise the peak; the plan has no budget,
  kAffordable,  // would fit: the plan is not the best there.
};

std::string_view NameOf(Reason reason);  // As JSON has it: "within-budget"

struct TensorExplanation {
  TensorId tensor;  // In whose memory that is which was asked for.
  Reason reason = Reason::kNotMeasured;
  std::vector<Stay> stays;  // In order.
  // The steps between which nobody uses it, both excluded: those around the peak or, where none
  // are, the most. Absent if there are none.
  struct Gap {
    size_t stay = 0;
    int32_t from = 0;
    int32_t to = 0;
    bool is_at_peak = false;
  };
  std::optional<Gap> gap;
  std::optional<Measured> if_freed;  // In the gap.
  // The first of its runs beyond one, and what is with the version before it kept.
  std::optional<int32_t> again_at;
  std::optional<Measured> if_kept;
};

// Measures what changes as long as `work`, which counts down, is above zero.
TensorExplanation ExplainTensor(const TracedPlan& traced, TensorId tensor, int64_t* work);

}  // namespace ckplan
