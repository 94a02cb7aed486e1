// The contents of memory at each moment of a plan's schedule, for drawing.
//
// Time is counted in moments: the beginning of each step, each allocation and each release is one.
// A span is in memory at the moments [begin, end).
//
//   step 0 begins · allocate a · step 1 begins · allocate b · release a · step 2 begins · ...
//        0              1              2               3            4            5
//
// If an output is written in place of a buffer, it starts a new span at the beginning of the step
// that writes it, as in timeline.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lib/base/units.h"
#include "lib/planning/explain/traced_plan.h"

namespace ckplan {

struct MemorySpan {
  BufferKind holds = BufferKind::kTensor;
  MemoryKind kind = MemoryKind::kKept;
  TensorId tensor;  // For kGradient, the gradient's tensor; none for kWorkspace.
  NodeId node;      // For kWorkspace only: the node that uses it.
  Bytes bytes;
  int64_t begin = 0;  // Moments.
  int64_t end = 0;
  std::vector<int32_t> reads;  // The steps that read it or an alias of it, ascending.
};

struct MemorySpans {
  std::vector<MemorySpan> spans;  // In order of allocation; without empty buffers.
  // The moment at which each step begins, and the end of the last.
  std::vector<int64_t> step_begin;
  // For each step, the first moment with its highest memory use.
  std::vector<int64_t> highest;
};

// O(buffers + versions + reads).
MemorySpans FindMemorySpans(const TracedPlan& traced);

// Returns the memory in use if everything is kept in the graph's own order, during the same work:
// one entry per step of the plan. A run beyond the first has no counterpart, so its entry repeats
// the step before.
std::vector<Bytes> KeepAllMemory(const TracedPlan& traced);

}  // namespace ckplan
