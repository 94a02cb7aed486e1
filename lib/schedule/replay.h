// What a sequence of steps does to memory, one by one: the one place that knows it, for forward
// graphs and for joint graphs. Whatever measures a plan is a sink of it, so peaks and timelines
// cannot disagree.
//
//   - A step makes new versions of all that its kind writes. A version dies after its last read
//     before the next step of the same kind; what nobody reads dies with its step; the last version
//     of a result lives to the end. Where a schedule frees explicitly (FreePolicy::kExplicit), a
//     version dies when it is freed, and at no other time.
//   - A value that is an alias shares the memory of its base's version, which is released when all
//     versions in it have died.
//   - A write takes over the memory of a read that dies at this very step, if the table allows it
//     and no other version is in that memory.
//   - While a step runs, memory holds what was live before, what it writes, and its workspace.
// The gradients of a forward graph are not values here: gradients.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "lib/base/stop.h"
#include "lib/schedule/schedule.h"
#include "lib/schedule/step_table.h"

namespace ckplan {

// Why a sequence cannot be replayed.
struct ReplayFault {
  enum class Kind : uint8_t {
    kAbsentRead,  // Reads a value that is not in memory.
    kAbsentFree,  // Frees one.
    kStillThere,  // Makes a value that has not been freed. With explicit frees alone.
    kNeverFreed,  // At the end. With explicit frees alone.
  };
  Kind kind = Kind::kAbsentRead;
  size_t step = 0;  // The number of steps for kNeverFreed.
  int32_t value = -1;
};

// Working memory is kept between sequences, so that replaying many of them allocates nothing.
class Replay {
 public:
  static constexpr int32_t kNone = -1;

  explicit Replay(const StepTable& table);  // Keeps a reference to `table`.
  // Not copied: whoever has a table beside it would keep a reference to another one's.
  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;

  // Reads the sequence of kinds of steps and frees (FreeOf), and says what is wrong with it: the
  // first fault. All kinds and values must be those of the table. O(reads and writes of all steps).
  std::optional<ReplayFault> Read(std::span<const int32_t> steps, FreePolicy frees);

  // Tells the sink what the sequence that was read last does, in the order of its steps and of the
  // calls below. Once for each Read; the span that was read must still be there.
  //   Allocate(buffer, value)         a new buffer, as large as the value; numbered from 0
  //   Make(value, buffer, last_read)  the step makes a version in this buffer, new or not; kNone if
  //                                   it occupies none. It is read last at that step; at this one
  //                                   if never
  //   Work(kind)                      all that the step makes is there
  //   Release(buffer, value)          of what was allocated for that value
  //   EndStep(kind)                   or the free
  // What dies at a step is released in the order of its reads, then of its writes. O(reads and
  // writes of all steps).
  template <typename Sink>
  void Tell(Sink* sink);

 private:
  struct Version {
    int32_t dies_at = kNone;  // The number of steps for what lives to the end.
    int32_t last_read = 0;
    int32_t buffer = kNone;
  };
  struct Buffer {
    int32_t living = 0;       // Live versions in it.
    int32_t first_value = 0;  // What it was allocated for.
  };

  Version& NewestOf(int32_t value) {
    return versions_[static_cast<size_t>(newest_[static_cast<size_t>(value)])];
  }
  // The pairs of a step's kind (StepTable::in_place) that are still to be tried.
  using Takers = std::span<const int32_t>;

  std::optional<ReplayFault> ReadStep(int32_t step, FreePolicy frees);
  bool CanBeTaken(int32_t value, int32_t step);
  Takers TakersOf(int32_t kind, int32_t step);
  int32_t TakenBy(int32_t write, int32_t step, Takers* takers);
  template <typename Sink>
  void TellWrites(int32_t kind, int32_t step, Sink* sink);
  template <typename Sink>
  void ReleaseIfDead(int32_t value, int32_t step, Sink* sink);

  const StepTable& table_;
  std::span<const int32_t> steps_;
  std::vector<Version> versions_;  // In the order of making.
  std::vector<int32_t> newest_;    // Version of each value, or kNone.
  std::vector<Buffer> buffers_;
  size_t told_ = 0;  // Versions that have been told.
};

template <typename Sink>
void Replay::Tell(Sink* sink) {
  newest_.assign(table_.bytes.size(), kNone);
  buffers_.clear();
  told_ = 0;
  for (size_t k = 0; k < steps_.size(); ++k) {
    PollStop();
    const auto step = static_cast<int32_t>(k);
    const int32_t kind = steps_[k];
    if (kind < 0) {
      ReleaseIfDead(FreeOf(kind), step, sink);
    } else {
      TellWrites(kind, step, sink);
      sink->Work(kind);
      for (const int32_t read : table_.reads[kind]) ReleaseIfDead(read, step, sink);
      for (const int32_t write : table_.writes[kind]) ReleaseIfDead(write, step, sink);
    }
    sink->EndStep(kind);
  }
}

template <typename Sink>
void Replay::TellWrites(int32_t kind, int32_t step, Sink* sink) {
  Takers takers = TakersOf(kind, step);
  for (const int32_t write : table_.writes[kind]) {
    const auto at = static_cast<size_t>(write);
    const int32_t base = table_.alias_of[at];
    int32_t buffer = kNone;
    if (base != kNone) {
      buffer = NewestOf(base).buffer;
    } else if (table_.is_in_memory[at]) {
      buffer = TakenBy(write, step, &takers);
      if (buffer == kNone) {
        buffer = static_cast<int32_t>(buffers_.size());
        buffers_.push_back({0, write});
        sink->Allocate(buffer, write);
      }
    }
    newest_[at] = static_cast<int32_t>(told_);
    Version& version = versions_[told_++];
    version.buffer = buffer;
    if (buffer != kNone) ++buffers_[static_cast<size_t>(buffer)].living;
    sink->Make(write, buffer, version.last_read);
  }
}

template <typename Sink>
void Replay::ReleaseIfDead(int32_t value, int32_t step, Sink* sink) {
  Version& version = NewestOf(value);
  if (version.dies_at != step) return;
  version.dies_at = kNone;  // A step may read a value twice; a version dies once.
  if (version.buffer == kNone) return;
  Buffer& buffer = buffers_[static_cast<size_t>(version.buffer)];
  if (--buffer.living == 0) sink->Release(version.buffer, buffer.first_value);
}

}  // namespace ckplan
