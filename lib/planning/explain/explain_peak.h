// Explains why a plan needs as much memory as it does: what lives at its peak, which of it the peak
// step itself needs, and which tensors could be released to lower the peak.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "lib/base/units.h"
#include "lib/planning/explain/traced_plan.h"
#include "lib/problem/schedule/simulate.h"
#include "lib/problem/schedule/training_step.h"

namespace ckplan {

// A buffer in memory at the peak.
struct LiveAtPeak {
  BufferKind holds = BufferKind::kTensor;
  MemoryKind kind = MemoryKind::kKept;
  TensorId tensor;  // For kGradient, the tensor whose gradient it is; none for kWorkspace.
  NodeId node;  // The node that made it or works in it; for a gradient, the producer of its tensor.
  int32_t version = -1;  // Index into the timeline's versions; -1 if it holds no tensor.
  Bytes bytes;
  int32_t since = 0;  // The first and the last step at which it is in memory.
  int32_t until = 0;
  // The step at the peak reads or makes it, so no change of the plan can release it there.
  bool is_used = false;
  int32_t next_read = -1;  // The first step after the peak that reads it; -1 if none does.
};

// A tensor that is held over the peak without being used there, and the figures of the plan if it
// is released there and run again before its next read; or, if it is moved, if it is on the host
// while the plan would need more than `then.peak` with it.
struct Release {
  size_t live = 0;  // Index into PeakExplanation::live.
  Simulation then;
  bool is_moved = false;
};

// The step that needs the most memory by itself: what it reads and makes, its workspace, and the
// gradients that exist by then.
struct LargestStep {
  Bytes bytes;
  size_t step = 0;
};

struct PeakExplanation {
  Bytes bytes;
  size_t step = 0;
  size_t equal_steps = 0;  // Number of steps that need as much, this one included.
  // Part of `bytes`; see PlanFigures. All other figures are for one micro-batch.
  Bytes other_micro_batches;
  // Largest first, without empty buffers. Their sum is the rest of `bytes`.
  std::vector<LiveAtPeak> live;
  std::array<Bytes, kMemoryKinds> by_kind;
  Bytes used;                 // The part that the step itself needs: `is_used`, and the workspace.
  std::vector<Release> next;  // Sorted by the lowest peak, then by the least time.
  size_t unmeasured = 0;      // Tensors that could be released but were not tried.
  bool can_release = true;    // False for plans that do not free by liveness.
  // No plan with this order of the backward steps has a lower peak; for a joint graph, no plan has.
  LargestStep largest;
};

PeakExplanation ExplainPeak(const TracedPlan& traced);

// Returns PeakExplanation::live without the other figures.
std::vector<LiveAtPeak> ListLiveAtPeak(const TracedPlan& traced);

// The memory at the peak by module. The list begins with the outermost modules; the largest are
// split into their submodules as long as there are no more than `max_rows`. Of submodules that are
// too many, those that differ only by a number are one row, "layers.*".
struct ModuleShare {
  std::string path;  // Empty for buffers that belong to no module.
  std::array<Bytes, kMemoryKinds> by_kind;

  Bytes total() const;
};
// Largest first, then by path; the sum is the peak.
std::vector<ModuleShare> SharesOfModules(const TrainingStep& graph,
                                         const std::vector<LiveAtPeak>& live, size_t max_rows);

}  // namespace ckplan
