// Explains why a plan keeps or recomputes a tensor: what would change if it did the opposite.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "lib/base/units.h"
#include "lib/planning/explain/traced_plan.h"
#include "lib/problem/schedule/simulate.h"
#include "lib/problem/schedule/transfers.h"

namespace ckplan {

// A period in memory, from the step that writes the tensor to the last step that needs it.
struct Stay {
  MemoryKind kind = MemoryKind::kKept;
  int32_t since = 0;
  int32_t until = 0;
  std::vector<int32_t> reads;  // The distinct steps that read it or its aliases, ascending.
  bool is_at_peak = false;
  int32_t version = -1;  // Index into the timeline's versions.
};

// Why the plan treats a tensor as it does, as far as a single change can show it.
enum class Reason : uint8_t {
  kGiven,          // An input, or counted as a constant.
  kEmpty,          // Has no bytes.
  kNeverMade,      // Not needed by any result.
  kUsedAtOnce,     // No step between two of its uses could release it.
  kMustNotRepeat,  // Releasing it would rerun an operation that must run once.
  // A constraint decides. The comments name the request's field:
  kToBeKept,        // keep
  kToRunOnce,       // never_rerun
  kToBeRecomputed,  // recompute
  kNotMeasured,     // No frees by liveness, or too many tensors at once.
  // The tensor is kept, and recomputing it instead
  // would not lower the peak: it is not in memory there, or another step needs as much.
  kElsewhere,
  kRaisesPeak,  // would raise the peak, because more must be in memory at once.
  kInBudget,    // would lower the peak and cost time; the budget doesn't need it.
  kTraded,      // would lower the peak and cost time; the plan has no budget.
  // The tensor is recomputed, and keeping it instead
  kOverBudget,  // would exceed the budget.
  kHigherPeak,  // would raise the peak; the plan has no budget.
  kAffordable,  // would fit: the plan could be better.
  kMoved,       // Moved to the host.
};

std::string_view NameOf(Reason reason);  // The name in JSON: "within-budget".

struct TensorExplanation {
  TensorId tensor;  // The tensor whose memory holds the requested one.
  Reason reason = Reason::kNotMeasured;
  std::vector<Stay> stays;  // In order.
  // The exclusive range of steps that don't use it: the gap around the peak or, if there is none,
  // the longest gap. Absent without a gap.
  struct Gap {
    size_t stay = 0;
    int32_t from = 0;
    int32_t to = 0;
    bool is_at_peak = false;
  };
  std::optional<Gap> gap;
  std::optional<Simulation> if_freed;  // If released in the gap.
  // The step of its second run or, if moved to the host, of the first copy back, and the figures if
  // the version before is kept.
  std::optional<int32_t> again_at;
  std::optional<Simulation> if_kept;
  std::vector<LinkCopy> copies;  // Its copies to the host and back, in order.
};

// Measures changes until `work`, which counts down, reaches zero.
TensorExplanation ExplainTensor(const TracedPlan& traced, TensorId tensor, int64_t* work);

}  // namespace ckplan
