// Explains a plan's peak: what is in memory, what the peak step itself needs, and which tensors
// could be released to lower the peak.
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

struct LiveAtPeak {
  BufferKind holds = BufferKind::kTensor;
  MemoryKind kind = MemoryKind::kKept;
  TensorId tensor;       // For kGradient, the gradient's tensor; none for kWorkspace.
  NodeId node;           // Its producer or user; for a gradient, its tensor's producer.
  int32_t version = -1;  // Index into the timeline's versions; -1 if it holds no tensor.
  Bytes bytes;
  int32_t since = 0;  // The first and last step with it in memory.
  int32_t until = 0;
  // The peak step reads or writes it, so no change of the plan can release it there.
  bool is_used = false;
  int32_t next_read = -1;  // The first step after the peak to read it; -1 if none.
};

// A tensor that is held over the peak without being used there, and the plan's figures if it is
// released there and recomputed before its next read or, if it is moved, is on the host while the
// plan would otherwise need more than `then.peak`.
struct Release {
  size_t live = 0;  // Index into PeakExplanation::live.
  Simulation then;
  bool is_moved = false;
};

// The step that needs the most memory by itself: its reads and writes, its workspace, and the
// gradients that exist by then.
struct LargestStep {
  Bytes bytes;
  size_t step = 0;
};

struct PeakExplanation {
  Bytes bytes;
  size_t step = 0;
  size_t equal_steps = 0;  // Number of steps with this peak, including this one.
  // Part of `bytes`; see PlanFigures. All other figures are for one micro-batch.
  Bytes other_micro_batches;
  // Largest first, without empty buffers. They add up to the rest of `bytes`.
  std::vector<LiveAtPeak> live;
  std::array<Bytes, kMemoryKinds> by_kind;
  Bytes used;                 // Needed by the step itself: `is_used` and the workspace.
  std::vector<Release> next;  // Sorted by peak, then by time, lowest first.
  size_t unmeasured = 0;      // Tensors that could be released but were not tried.
  bool can_release = true;    // False for plans without frees by liveness.
  // A lower bound on the peak of plans with this order of backward steps; for a joint graph, of all
  // plans.
  LargestStep largest;
};

PeakExplanation ExplainPeak(const TracedPlan& traced);

// Returns PeakExplanation::live without the other figures.
std::vector<LiveAtPeak> ListLiveAtPeak(const TracedPlan& traced);

// The memory at the peak by module. Starts with the outermost modules and splits the largest into
// submodules as long as there are at most `max_rows`. If a module has too many submodules, those
// that differ only by a number share a row, "layers.*".
struct ModuleShare {
  std::string path;  // Empty for buffers that belong to no module.
  std::array<Bytes, kMemoryKinds> by_kind;

  Bytes total() const;
};
// Largest first, then by path. The rows add up to the peak.
std::vector<ModuleShare> SharesOfModules(const TrainingStep& graph,
                                         const std::vector<LiveAtPeak>& live, size_t max_rows);

}  // namespace ckplan
