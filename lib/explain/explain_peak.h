// Why a plan needs as much memory as it does: what lives at its peak, what of it the step itself
// needs, and what would have to go next for the peak to be lower.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "lib/base/units.h"
#include "lib/explain/traced_plan.h"

namespace ckplan {

// A buffer in memory at the peak.
struct LiveAtPeak {
  BufferKind holds = BufferKind::kTensor;
  MemoryKind kind = MemoryKind::kKept;
  TensorId tensor;       // For kGradient, whose gradient it is; none for kWorkspace.
  NodeId node;           // What made it or works in it; of a gradient the maker of its tensor.
  int32_t version = -1;  // Of the timeline; -1 if it holds no tensor.
  Bytes bytes;
  int32_t since = 0;  // The first and the last step at which it is in memory.
  int32_t until = 0;
  // The step at the peak reads it or makes it, so no change of the plan takes it from there.
  bool is_used = false;
  int32_t next_read = -1;  // The first step behind the peak that reads it; -1 if none does.
};

// A tensor that is held over the peak without being used there, and what the plan is like where it
// is released, and run again before it is read next.
struct Release {
  size_t live = 0;  // Index into PeakExplanation::live.
  Measured then;
};

// The step that needs the most by itself: what it reads and makes, its workspace, and the gradients
// that are there by then.
struct LargestStep {
  Bytes bytes;
  size_t step = 0;
};

struct PeakExplanation {
  Bytes bytes;
  size_t step = 0;
  size_t equal_steps = 0;        // How many steps need as much, this one included.
  Bytes other_micro_batches;     // Of `bytes`: see PlanFigures. All else is of one micro-batch.
  std::vector<LiveAtPeak> live;  // Largest first; without empty buffers. They add up to the rest.
  std::array<Bytes, kMemoryKinds> by_kind;
  Bytes used;                 // By the step itself: `is_used`, and the workspace.
  std::vector<Release> next;  // The lowest peak first, then the least time.
  size_t unmeasured = 0;      // Tensors that might be released, but were not tried.
  bool can_release = true;    // False for plans that do not free by liveness.
  // No plan whose backward steps come in this order has a lower peak; of a joint graph, no plan.
  LargestStep largest;
};

PeakExplanation ExplainPeak(const TracedPlan& traced);

// PeakExplanation::live alone.
std::vector<LiveAtPeak> ListLiveAtPeak(const TracedPlan& traced);

// What is in memory at the peak by module: those at the outermost level, of which the largest are
// taken apart into what is in them, as long as there are no more than `max_rows`.
struct ModuleShare {
  std::string path;  // Empty for what is in no module.
  std::array<Bytes, kMemoryKinds> by_kind;

  Bytes total() const;
};
// Largest first, then by path; together they are the peak.
std::vector<ModuleShare> SharesOfModules(const PlannedGraph& graph,
                                         const std::vector<LiveAtPeak>& live, size_t max_rows);

}  // namespace ckplan
