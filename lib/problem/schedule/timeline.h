// The memory of a schedule over its steps: every buffer with its life, and the use of each step,
// split by what it holds.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "lib/base/result.h"
#include "lib/base/units.h"
#include "lib/problem/graph/tensor_graph.h"
#include "lib/problem/schedule/schedule.h"
#include "lib/problem/schedule/training_step.h"

namespace ckplan {

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

// The contents of memory when the peak is first reached.
struct PeakBuffer {
  int32_t buffer = -1;  // Index into Timeline::buffers.
  // Index into Timeline::versions of the version that it holds; -1 if it holds no tensor.
  int32_t version = -1;
};

// Lists the buffers in order of allocation, without those of no bytes; their sum is Timeline::peak.
// A buffer that is handed on to an output written in place in the peak step itself counts as the
// output's. O(n log n) for n buffers.
std::vector<PeakBuffer> FindPeakBuffers(const Timeline& timeline);

enum class MemoryKind : uint8_t {
  kKept,        // Results of the forward pass that a step after the loss reads.
  kPassing,     // Results of the forward pass that no step after the loss reads.
  kRecomputed,  // Results that are computed again after the loss.
  kGradients,
  kWorkspace,
  kLoaded,  // Results that were copied back from the host.
};
inline constexpr size_t kMemoryKinds = 6;
// The number of kinds that tables show, from the first on: plans without transfers load nothing.
size_t ShownKinds(const Schedule& schedule);

std::string_view NameOf(MemoryKind kind);  // "kept", "passing", ...
// The kind of a version in a forward graph's timeline.
MemoryKind KindOf(const Timeline& timeline, const Version& version);
// The kinds of the timeline's versions. In a joint graph, the results of first runs of backward
// operations count as gradients, and what an `in` makes is loaded.
std::vector<MemoryKind> MemoryKindsOf(const TrainingStep& of, const Schedule& schedule,
                                      const Timeline& timeline);

struct StepMemory {
  // The memory at the moment of the step at which use is highest, the first of several. Indexed by
  // MemoryKind; the sum is the step's Timeline::step_bytes.
  std::array<Bytes, kMemoryKinds> by_kind;
  Bytes after;  // Memory that is still in use when the step has ended.

  Bytes of(MemoryKind kind) const { return by_kind[static_cast<size_t>(kind)]; }
  Bytes total() const;
};

// Returns one entry for each step. A buffer that is handed on to an output written in place counts
// as the output's from the beginning of that step. Constants are not included. O(buffers + steps).
std::vector<StepMemory> TraceMemory(const Timeline& timeline);
// Takes the kinds of the timeline's versions, for schedules where they do not follow from the loss.
std::vector<StepMemory> TraceMemory(const Timeline& timeline, std::span<const MemoryKind> kinds);

}  // namespace ckplan
