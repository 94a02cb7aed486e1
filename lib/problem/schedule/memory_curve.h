// Memory over the steps of a schedule, split by what it holds.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "lib/base/units.h"
#include "lib/problem/schedule/timeline.h"
#include "lib/problem/schedule/training_step.h"

namespace ckplan {

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
