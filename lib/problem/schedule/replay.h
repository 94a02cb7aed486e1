// What a sequence of steps does to memory, step by step, for forward graphs and for joint graphs.
// These rules are stated only here. Everything that measures a plan is a sink of the replay, so
// peaks and timelines cannot disagree.
//
//   - A step makes new versions of everything that its kind writes. A version dies after its last
//     read before the next step of the same kind. A version that is never read dies with its step,
//     and the last version of a result lives to the end. In a schedule with explicit frees
//     (FreePolicy::kExplicit), a version dies when it is freed, and at no other time.
//   - An alias shares the memory of its base's version. That memory is released when all versions
//     in it have died.
//   - A write takes over the memory of a read that dies at this very step, if the table allows it
//     and no other version is in that memory.
//   - While a step runs, memory holds what was live before, what the step writes, and the step's
//     workspace.
//   - Transfers move a value that has memory of its own (step_table.h). `out` and `drop` read the
//     value's version. Between them no step makes the value, and nothing takes over its memory,
//     since the version is still to be read. After the drop, the value and the aliases that share
//     the version's memory are away: nothing can read them. `in` makes a new version of the value
//     in memory of its own, and new versions of those aliases in the same memory.
// The gradients of a forward graph are not values here (see gradients.h); sinks learn of their
// frees by EndStep.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "lib/base/stop.h"
#include "lib/base/units.h"
#include "lib/problem/schedule/schedule.h"
#include "lib/problem/schedule/step_table.h"

namespace ckplan {

// The reason why a sequence cannot be replayed.
struct ReplayFault {
  enum class Kind : uint8_t {
    kReadsAbsent,   // The step reads a value that is not in memory.
    kFreesAbsent,   // The step frees a value that is not in memory.
    kNotFreed,      // The step makes a value that has not been freed. Only with explicit frees.
    kNeverFreed,    // A value is still in memory at the end. Only with explicit frees.
    kCopyUnderWay,  // The step makes, copies or loads a value between its `out` and its `drop`.
    kNoCopy,        // The step drops a value of which no copy is under way.
    kNotOnHost,     // The step loads a value that has never been dropped.
    kNeverDropped,  // A copy is still under way at the end; the step is the number of steps.
    kUnreadLoad,    // No run reads what the step loads.
  };
  Kind kind = Kind::kReadsAbsent;
  size_t step = 0;  // The number of steps for kNeverFreed and others, which say so.
  int32_t value = -1;
};

// Working memory is reused between sequences, so replaying many of them allocates nothing.
class Replay {
 public:
  static constexpr int32_t kNone = -1;

  explicit Replay(const StepTable& table);  // Keeps a reference to `table`.
  // Not copyable: the copy in an object that owns a table would refer to the other object's table.
  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;

  // Reads a sequence of kinds of steps and frees (FreeOf) and returns its first fault, if any. All
  // kinds and values must be those of the table. O(reads and writes of all steps).
  std::optional<ReplayFault> Read(std::span<const int32_t> steps, FreePolicy frees);

  // Reports to the sink what the last sequence read does, step by step, in the order of the calls
  // below. It may be called once for each Read, while the span that was read still exists.
  //   Allocate(buffer, value)         a new buffer, as large as the value; numbered from 0
  //   Make(value, buffer, last_read)  the step makes a version in this buffer, new or not; kNone if
  //                                   it occupies none. `last_read` is the step that reads it last,
  //                                   or this step if none does
  //   Work(kind)                      everything that the step makes exists now
  //   Release(buffer, value)          `value` is the one that the buffer was allocated for
  //   EndStep(kind)                   the step, or the free, has ended
  // Buffers that die at a step are released in the order of its reads, then of its writes. O(reads
  // and writes of all steps).
  template <typename Sink>
  void Report(Sink* sink);

 private:
  struct Version {
    int32_t dies_at = kNone;  // The number of steps if the version lives to the end.
    int32_t last_read = 0;
    int32_t buffer = kNone;
  };
  struct Buffer {
    int32_t living = 0;       // Number of live versions in it.
    int32_t first_value = 0;  // The value that it was allocated for.
  };
  // A step that loads a value. A load is read if a run reads the value's version or an alias's.
  struct Load {
    int32_t step = 0;
    int32_t value = 0;
    bool is_read = false;
  };
  // What Read knows of a value of a table with transfers.
  struct Place {
    int32_t block = kNone;  // The version that has the memory of the newest version.
    int32_t load = kNone;   // The load that made the newest version, if one did.
    bool is_away = false;   // Its newest version was dropped, or in memory that was.
    bool is_on_host = false;
    bool is_copied = false;  // Between its `out` and its `drop`.
  };
  // An alias that comes back with its storage.
  struct Revival {
    int32_t step = 0;
    int32_t alias = 0;
  };

  Version& NewestOf(int32_t value) {
    return versions_[static_cast<size_t>(newest_[static_cast<size_t>(value)])];
  }
  // The pairs of a step's kind (StepTable::in_place) that have not been tried yet.
  using Takers = std::span<const int32_t>;

  std::optional<ReplayFault> ReadStep(int32_t step, FreePolicy frees);
  std::optional<ReplayFault> ReadTransfer(int32_t step);
  std::optional<ReplayFault> PlaceRun(int32_t step);
  std::optional<ReplayFault> FaultAtEnd() const;
  void MakeVersion(int32_t value, int32_t step);
  void TakeAway(int32_t value);
  void BringBack(int32_t value, int32_t step);
  bool IsOfGradient(int32_t free) const {
    return static_cast<size_t>(FreeOf(free)) >= table_.bytes.size();
  }
  bool IsLoad(int32_t kind) const {
    return kind >= table_.first_transfer && table_.TransferOf(kind) == StepKind::kIn;
  }
  bool CanBeTaken(int32_t value, int32_t step);
  Takers TakersOf(int32_t kind, int32_t step);
  int32_t TakenBy(int32_t write, int32_t step, Takers* takers);
  template <typename Sink>
  void ReportWrites(int32_t kind, int32_t step, Sink* sink);
  template <typename Sink>
  void ReportVersion(int32_t value, int32_t buffer, Sink* sink);
  template <typename Sink>
  void ReportLoad(int32_t value, int32_t step, Sink* sink);
  template <typename Sink>
  void ReleaseIfDead(int32_t value, int32_t step, Sink* sink);

  Place& PlaceOf(int32_t value) { return places_[static_cast<size_t>(value)]; }

  const StepTable& table_;
  std::span<const int32_t> steps_;
  std::vector<Version> versions_;  // In the order of making.
  std::vector<int32_t> newest_;    // Version of each value, or kNone.
  std::vector<Buffer> buffers_;
  size_t reported_ = 0;  // Number of versions reported so far.
  // These are empty unless the table has transfers.
  std::vector<Place> places_;
  std::vector<Load> loads_;
  std::vector<Revival> revivals_;  // In the order of the steps.
  size_t revived_ = 0;             // Number of revivals reported so far.
};

template <typename Sink>
void Replay::Report(Sink* sink) {
  newest_.assign(table_.bytes.size(), kNone);
  buffers_.clear();
  reported_ = revived_ = 0;
  for (size_t k = 0; k < steps_.size(); ++k) {
    PollStop();
    const auto step = static_cast<int32_t>(k);
    const int32_t kind = steps_[k];
    if (kind < 0) {
      if (!IsOfGradient(kind)) ReleaseIfDead(FreeOf(kind), step, sink);
    } else {
      const size_t first_revival = revived_;
      IsLoad(kind) ? ReportLoad(table_.MovedBy(kind), step, sink) : ReportWrites(kind, step, sink);
      sink->Work(kind);
      for (const int32_t read : table_.reads[kind]) ReleaseIfDead(read, step, sink);
      for (const int32_t write : table_.writes[kind]) ReleaseIfDead(write, step, sink);
      for (size_t i = first_revival; i < revived_; ++i) {
        ReleaseIfDead(revivals_[i].alias, step, sink);
      }
    }
    sink->EndStep(kind);
  }
}

template <typename Sink>
void Replay::ReportWrites(int32_t kind, int32_t step, Sink* sink) {
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
    ReportVersion(write, buffer, sink);
  }
}

template <typename Sink>
void Replay::ReportVersion(int32_t value, int32_t buffer, Sink* sink) {
  newest_[static_cast<size_t>(value)] = static_cast<int32_t>(reported_);
  Version& version = versions_[reported_++];
  version.buffer = buffer;
  if (buffer != kNone) ++buffers_[static_cast<size_t>(buffer)].living;
  sink->Make(value, buffer, version.last_read);
}

// Reports the value that this step loads, and the aliases that come back with it.
template <typename Sink>
void Replay::ReportLoad(int32_t value, int32_t step, Sink* sink) {
  const auto buffer = static_cast<int32_t>(buffers_.size());
  buffers_.push_back({0, value});
  sink->Allocate(buffer, value);
  for (; revived_ < revivals_.size() && revivals_[revived_].step == step; ++revived_) {
    ReportVersion(revivals_[revived_].alias, buffer, sink);
  }
  ReportVersion(value, buffer, sink);
}

template <typename Sink>
void Replay::ReleaseIfDead(int32_t value, int32_t step, Sink* sink) {
  Version& version = NewestOf(value);
  if (version.dies_at != step) return;
  version.dies_at = kNone;  // A step may read a value twice, but a version dies once.
  if (version.buffer == kNone) return;
  Buffer& buffer = buffers_[static_cast<size_t>(version.buffer)];
  if (--buffer.living == 0) sink->Release(version.buffer, buffer.first_value);
}

// The sink of a replay (replay.h) that measures the peak and the cost.
class PeakMeter {
 public:
  explicit PeakMeter(const StepTable& table) : table_(table) {}  // Keeps a reference to `table`.

  void Allocate(int32_t /*buffer*/, int32_t value) { live_ += Of(table_.bytes, value); }
  void Make(int32_t /*value*/, int32_t /*buffer*/, int32_t /*last_read*/) {}
  void Work(int32_t kind) { Measure(kind, Bytes(0)); }
  void Release(int32_t /*buffer*/, int32_t value) { live_ -= Of(table_.bytes, value); }
  void EndStep(int32_t /*kind*/) { ++step_; }

  Bytes peak() const { return peak_; }
  size_t peak_step() const { return peak_step_; }  // The first step that needs the peak.
  Cost cost() const { return cost_; }

 protected:
  template <typename T>
  static T Of(const std::vector<T>& list, int32_t i) {
    return list[static_cast<size_t>(i)];
  }

  // Accounts for a step that also needs `gradients`, which the replay does not track.
  void Measure(int32_t kind, Bytes gradients) {
    cost_ += Of(table_.cost, kind);
    const Bytes needed = live_ + gradients + Of(table_.workspace, kind);
    if (step_ > 0 && needed <= peak_) return;
    peak_ = needed;
    peak_step_ = step_;
  }
  Bytes live() const { return live_; }

 private:
  const StepTable& table_;
  Bytes live_;
  Bytes peak_;
  Cost cost_;
  size_t peak_step_ = 0;
  size_t step_ = 0;
};

}  // namespace ckplan
