// The contents of memory at each moment of a plan's schedule, for pictures.
//
// Time is counted in moments: the beginning of each step is one, and each allocation and each
// release is one. The contents of a span are in memory at the moments [begin, end).
//
//   step 0 begins · allocate a · step 1 begins · allocate b · release a · step 2 begins · ...
//        0              1              2               3            4            5
//
// A buffer that is handed on to an output written in place is a span of its own from the beginning
// of the step that writes it, as in timeline.h.
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
  TensorId tensor;  // For kGradient, the tensor whose gradient it is; none for kWorkspace.
  NodeId node;      // For kWorkspace only: the node that works in it.
  Bytes bytes;
  int64_t begin = 0;  // Moments.
  int64_t end = 0;
  std::vector<int32_t> reads;  // The steps that read it or an alias of it, ascending.
};

struct MemorySpans {
  std::vector<MemorySpan> spans;  // In order of allocation; without empty buffers.
  // The moment at which each step begins, and the end of the last.
  std::vector<int64_t> step_begin;
  // For each step, the first moment at which its memory use is highest.
  std::vector<int64_t> highest;
};

// O(buffers + versions + reads).
MemorySpans FindMemorySpans(const TracedPlan& traced);

// The memory in use when everything is kept in the graph's own order, while it does the same work:
// one entry for each step of the plan. A run beyond the first has no counterpart there, so such a
// step has the entry of the step before.
std::vector<Bytes> KeepAllMemory(const TracedPlan& traced);

}  // namespace ckplan
