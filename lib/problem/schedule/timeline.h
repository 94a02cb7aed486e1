// Every buffer of a schedule, with the times at which it begins and ends.
//
// Time inside a step matters (a gradient's temporary buffer may go before the next one comes), so
// buffers carry ticks: each allocation and each release is one tick, and a buffer lives in
// [begin, end). The events of a step come in this order:
//   forward    outputs in the node's order, workspace │ release workspace, then what dies here
//   loss       gradients of the outputs               │ release what dies here
//   backward   workspace, gradients (gradients.h)     │ release workspace, then what dies here
//   run        as forward; the buffers of a joint graph hold values (kTensor) or workspace
// Buffers that die at a step are released in the order of the step's reads, then of its outputs. An
// output written in place takes over the buffer of the input that dies: one buffer, two tensors.
// Plans store one offset for each buffer, in order of allocation.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lib/base/result.h"
#include "lib/base/units.h"
#include "lib/problem/graph/tensor_graph.h"
#include "lib/problem/schedule/schedule.h"
#include "lib/problem/schedule/training_step.h"

namespace ckplan {

enum class BufferKind : uint8_t { kTensor, kGradient, kWorkspace };

struct Buffer {
  BufferKind kind = BufferKind::kTensor;
  // kTensor: the first tensor in it. kGradient: the tensor whose gradient it was made for.
  TensorId tensor;
  NodeId node;  // kWorkspace: the node that works in it.
  Bytes bytes;
  int64_t begin = 0;  // Tick.
  int64_t end = 0;    // Tick, exclusive.
  int32_t first_step = 0;
  int32_t last_step = 0;  // Inclusive.
};

// A tensor as one forward step made it; a recomputation makes another version.
struct Version {
  TensorId tensor;
  int32_t buffer = -1;    // Index into Timeline::buffers.
  int32_t made_at = 0;    // Step.
  int32_t last_read = 0;  // Step; made_at if nothing reads it.
};

struct Timeline {
  std::vector<Buffer> buffers;    // In order of allocation.
  std::vector<Version> versions;  // In order of making.
  std::vector<Bytes> step_bytes;  // The highest memory use during each step.
  Bytes peak;
  size_t peak_step = 0;
  size_t loss_step = 0;
};

// The schedule must have passed Simulator::Run. O(reads of all steps).
Timeline BuildTimeline(const TrainingStep& step, const Schedule& schedule);
// The timeline of these runs of a joint graph.
Timeline BuildTimeline(const TrainingStep& step, std::span<const NodeId> runs);

}  // namespace ckplan
