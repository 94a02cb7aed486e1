// The memory of a schedule over time: the lifetime of each buffer, and the memory at each step by
// kind.
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

// Time inside a step matters (a temporary gradient buffer may end before the next one begins), so
// each allocation and each release is a tick, and a buffer lives in [begin, end). The events of a
// step, in order:
//   forward    outputs in the node's order, workspace │ release workspace, then buffers that die
//   loss       gradients of the outputs               │ release buffers that die
//   backward   workspace, gradients (gradients.h)     │ release workspace, then buffers that die
//   run        as forward; the buffers of a joint graph hold values (kTensor) or workspace
// Buffers that die at a step are released in the order of the step's reads, then of its outputs. An
// output in place reuses the buffer of the input that dies: one buffer, two tensors. Plans store
// one offset per buffer, in allocation order.
enum class BufferKind : uint8_t { kTensor, kGradient, kWorkspace };

struct Buffer {
  BufferKind kind = BufferKind::kTensor;
  // kTensor: the first tensor in it. kGradient: the tensor of the first gradient in it.
  TensorId tensor;
  NodeId node;  // kWorkspace: the node that uses it.
  Bytes bytes;
  int64_t begin = 0;  // Tick.
  int64_t end = 0;    // Tick, exclusive.
  int32_t first_step = 0;
  int32_t last_step = 0;  // Inclusive.
};

// The result of one run: each recomputation of a tensor creates another version.
struct Version {
  TensorId tensor;
  int32_t buffer = -1;    // Index into Timeline::buffers.
  int32_t made_at = 0;    // The step that creates it.
  int32_t last_read = 0;  // The last step that reads it, or made_at.
};

struct Timeline {
  std::vector<Buffer> buffers;    // In allocation order.
  std::vector<Version> versions;  // In order of creation.
  std::vector<Bytes> step_bytes;  // The highest memory use during each step.
  Bytes peak;
  size_t peak_step = 0;
  size_t loss_step = 0;
};

// The schedule must have passed Simulator::Run. O(reads of all steps).
Timeline BuildTimeline(const TrainingStep& step, const Schedule& schedule);
// For runs of a joint graph.
Timeline BuildTimeline(const TrainingStep& step, std::span<const NodeId> runs);

// A buffer in memory when the peak is first reached.
struct PeakBuffer {
  int32_t buffer = -1;  // Index into Timeline::buffers.
  // The index of its version in Timeline::versions; -1 for gradients and workspaces.
  int32_t version = -1;
};

// Lists the buffers in allocation order, without empty ones; their sum is Timeline::peak. A buffer
// that an output of the peak step reuses in place counts as the output's. O(n log n) for n buffers.
std::vector<PeakBuffer> FindPeakBuffers(const Timeline& timeline);

enum class MemoryKind : uint8_t {
  kKept,        // Forward results that a step after the loss reads.
  kPassing,     // Forward results that no step after the loss reads.
  kRecomputed,  // Results that are recomputed after the loss.
  kGradients,
  kWorkspace,
  kLoaded,  // Results that are copied back from the host.
};
inline constexpr size_t kMemoryKinds = 6;
// Returns the number of kinds to show: plans without transfers have no kLoaded.
size_t ShownKinds(const Schedule& schedule);

std::string_view NameOf(MemoryKind kind);  // "kept", "passing", ...
// For a version in a forward graph's timeline.
MemoryKind KindOf(const Timeline& timeline, const Version& version);
// Returns the kinds of the timeline's versions. In a joint graph, the results of backward
// operations' first runs count as gradients, and versions of an `in` are loaded.
std::vector<MemoryKind> MemoryKindsOf(const TrainingStep& of, const Schedule& schedule,
                                      const Timeline& timeline);

struct StepMemory {
  // The memory at the step's highest moment, by MemoryKind. The sum is Timeline::step_bytes.
  std::array<Bytes, kMemoryKinds> by_kind;
  Bytes after;  // The memory in use after the step.

  Bytes of(MemoryKind kind) const { return by_kind[static_cast<size_t>(kind)]; }
  Bytes total() const;
};

// Returns one entry per step. A buffer that an output reuses in place counts as the output's from
// the beginning of that step. Constants are not included. O(buffers + steps).
std::vector<StepMemory> TraceMemory(const Timeline& timeline);
// For schedules where the kinds of the versions do not follow from the loss.
std::vector<StepMemory> TraceMemory(const Timeline& timeline, std::span<const MemoryKind> kinds);

}  // namespace ckplan
