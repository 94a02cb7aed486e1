// Explains why a plan keeps or recomputes a tensor: what would change if it did the other.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "lib/base/units.h"
#include "lib/planning/explain/traced_plan.h"
#include "lib/problem/schedule/simulate.h"
#include "lib/problem/schedule/transfers.h"

namespace ckplan {

// A time in memory, from the step that makes the tensor to the last step that needs it.
struct Stay {
  MemoryKind kind = MemoryKind::kKept;
  int32_t since = 0;
  int32_t until = 0;
  std::vector<int32_t> reads;  // The steps that read it or its aliases, ascending, each once.
  bool is_at_peak = false;
  int32_t version = -1;  // Index into the timeline's versions.
};

// The reason why the plan treats a tensor as it does, as far as a single change can show it.
enum class Reason : uint8_t {
  kGiven,          // It is given from outside, or is counted with the constants.
  kEmpty,          // It has no bytes.
  kNeverMade,      // No result needs it.
  kUsedAtOnce,     // No step between two of its uses could release it.
  kMustNotRepeat,  // Releasing it would make an operation run twice that must not.
  // A constraint of the plan decides. The comments name the request's fields:
  kToBeKept,        // keep
  kToRunOnce,       // never_rerun
  kToBeRecomputed,  // recompute
  kNotMeasured,  // The plan does not free by liveness, or too many tensors were asked for at once.
  // The tensor is kept, and running it again instead
  // would not lower the peak: it is not in memory there, or another step needs as much.
  kElsewhere,
  kRaisesPeak,  // would raise the peak, because of what must be in memory at once.
  kInBudget,    // would lower the peak and cost time; the plan is within its budget without it.
  kTraded,      // would lower the peak and cost time; the plan has no budget.
  // The tensor is run again, and keeping it instead
  kOverBudget,  // would need more than the budget.
  kHigherPeak,  // would raise the peak; the plan has no budget.
  kAffordable,  // would fit: the plan could be better here.
  kMoved,       // It is moved to the host.
};

std::string_view NameOf(Reason reason);  // The name in JSON: "within-budget".

struct TensorExplanation {
  TensorId tensor;  // The tensor whose memory holds the tensor that was asked for.
  Reason reason = Reason::kNotMeasured;
  std::vector<Stay> stays;  // In order.
  // The steps between which no step uses it, both excluded: the gap around the peak, or the longest
  // gap if it has none there. Absent if it has no gap.
  struct Gap {
    size_t stay = 0;
    int32_t from = 0;
    int32_t to = 0;
    bool is_at_peak = false;
  };
  std::optional<Gap> gap;
  std::optional<Simulation> if_freed;  // If it is released in the gap.
  // The step of its first run beyond one or, if it is moved to the host, of the first copy back;
  // and the figures if the version before it is kept.
  std::optional<int32_t> again_at;
  std::optional<Simulation> if_kept;
  std::vector<LinkCopy> copies;  // Its copies to the host and back, in order.
};

// Measures changes as long as `work`, which counts down, is above zero.
TensorExplanation ExplainTensor(const TracedPlan& traced, TensorId tensor, int64_t* work);

}  // namespace ckplan
