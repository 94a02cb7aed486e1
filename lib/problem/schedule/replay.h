// Replays the effect of a sequence of steps on memory, for forward graphs and joint graphs. All
// code that measures a plan is a sink of the replay, so peaks and timelines cannot disagree. The
// rules:
//
//   - A step creates new versions of the values that its kind writes. A version dies after its last
//     read before the next step of the same kind. A version that is never read dies at the end of
//     its step, and the last version of a result lives to the end. In a schedule with explicit
//     frees (FreePolicy::kExplicit), a version dies only when it is freed.
//   - An alias shares the memory of its base's version. The memory is released when all versions in
//     it have died.
//   - A write reuses the memory of a read that dies at this step, if the table allows it and no
//   other
//     version is in that memory.
//   - While a step runs, memory holds all live versions, the step's writes and its workspace.
//   - Transfers move a value that has its own memory (step_table.h). `out` and `drop` read the
//     value's version. Between them, no step writes the value, and no write reuses its memory.
//     After the drop, the value and the aliases in its memory cannot be read. `in` creates new
//     versions of the value and of those aliases, in new memory.
//
// The gradients of a forward graph are not values (see gradients.h). Sinks get their frees by
// EndStep.
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
    kNotFreed,      // The step writes a value that is not freed. Only with explicit frees.
    kNeverFreed,    // A value is still in memory at the end. Only with explicit frees.
    kCopyUnderWay,  // The step writes, copies or loads a value between its `out` and its `drop`.
    kNoCopy,        // The step drops a value without an `out`.
    kNotOnHost,     // The step loads a value that was never dropped.
    kNeverDropped,  // A value has an `out` without a `drop`; `step` is the number of steps.
    kUnreadLoad,    // No run reads the value that the step loads.
  };
  Kind kind = Kind::kReadsAbsent;
  size_t step = 0;  // The number of steps for kNeverFreed and kNeverDropped.
  int32_t value = -1;
};

// Reuses its working memory between sequences.
class Replay {
 public:
  static constexpr int32_t kNone = -1;

  explicit Replay(const StepTable& table);  // Keeps a reference to `table`.
  // Not copyable, since a copy in an object that owns a table would refer to the original's table.
  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;

  // Reads a sequence of kinds of steps and frees (FreeOf) and returns its first fault, if any. The
  // kinds and values must be in the table. O(reads and writes of all steps).
  std::optional<ReplayFault> Read(std::span<const int32_t> steps, FreePolicy frees);

  // Reports the last sequence to the sink, step by step, in the order of the calls below. May be
  // called once per Read, while the span that was read exists.
  //   Allocate(buffer, value)         a new buffer with the size of the value, numbered from 0
  //   Make(value, buffer, last_read)  the step creates a version in this buffer, or in none
  //   (kNone).
  //                                   `last_read` is the last step that reads it, or this step
  //   Work(kind)                      all versions of the step exist
  //   Release(buffer, value)          `value` is the value for which the buffer was allocated
  //   EndStep(kind)                   the end of the step or the free
  // Releases buffers that die at a step in the order of its reads, then of its writes. O(reads and
  // writes of all steps).
  template <typename Sink>
  void Report(Sink* sink);

 private:
  struct Version {
    int32_t dies_at = kNone;  // The number of steps if the version lives to the end.
    int32_t last_read = 0;
    int32_t buffer = kNone;
  };
  struct Buffer {
    int32_t living = 0;       // The number of live versions in it.
    int32_t first_value = 0;  // The value for which it was allocated.
  };
  // A step that loads a value. `is_read`: a run reads the loaded value or an alias of it.
  struct Load {
    int32_t step = 0;
    int32_t value = 0;
    bool is_read = false;
  };
  // The state of a value in Read, for tables with transfers.
  struct Place {
    int32_t block = kNone;  // The version that identifies the newest version's memory.
    int32_t load = kNone;   // The load that created the newest version, if any.
    bool is_away = false;   // The newest version's memory was dropped.
    bool is_on_host = false;
    bool is_copied = false;  // Between `out` and `drop`.
  };
  // An alias that comes back with its storage.
  struct Revival {
    int32_t step = 0;
    int32_t alias = 0;
  };

  Version& NewestVersionOf(int32_t value) {
    return versions_[static_cast<size_t>(newest_[static_cast<size_t>(value)])];
  }
  // The remaining in-place pairs of a step's kind (StepTable::in_place).
  using InPlacePairs = std::span<const int32_t>;

  std::optional<ReplayFault> ReadStep(int32_t step, FreePolicy frees);
  std::optional<ReplayFault> ReadTransfer(int32_t step);
  std::optional<ReplayFault> PlaceRun(int32_t step);
  std::optional<ReplayFault> FaultAtEnd() const;
  void MakeVersion(int32_t value, int32_t step);
  void DropVersion(int32_t value);
  void BringBack(int32_t value, int32_t step);
  bool IsOfGradient(int32_t free) const {
    return static_cast<size_t>(FreeOf(free)) >= table_.bytes.size();
  }
  bool IsLoad(int32_t kind) const {
    return kind >= table_.first_transfer && table_.TransferOf(kind) == StepKind::kIn;
  }
  bool CanReuseMemory(int32_t value, int32_t step);
  InPlacePairs PairsToTry(int32_t kind, int32_t step);
  int32_t FindReusedBuffer(int32_t write, int32_t step, InPlacePairs* pairs_left);
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
  std::vector<Version> versions_;  // In the order of creation.
  std::vector<int32_t> newest_;    // The newest version of each value, or kNone.
  std::vector<Buffer> buffers_;
  size_t reported_ = 0;  // The number of versions reported so far.
  // Empty unless the table has transfers.
  std::vector<Place> places_;
  std::vector<Load> loads_;
  std::vector<Revival> revivals_;  // In the order of the steps.
  size_t revived_ = 0;             // The number of revivals reported so far.
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
      if (IsLoad(kind)) {
        ReportLoad(table_.MovedBy(kind), step, sink);
      } else {
        ReportWrites(kind, step, sink);
      }
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
  InPlacePairs pairs_left = PairsToTry(kind, step);
  for (const int32_t write : table_.writes[kind]) {
    const auto at = static_cast<size_t>(write);
    const int32_t base = table_.alias_of[at];
    int32_t buffer = kNone;
    if (base != kNone) {
      buffer = NewestVersionOf(base).buffer;
    } else if (table_.is_in_memory[at]) {
      buffer = FindReusedBuffer(write, step, &pairs_left);
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
  Version& version = NewestVersionOf(value);
  if (version.dies_at != step) return;
  version.dies_at = kNone;  // A version dies once, even if the step reads it twice.
  if (version.buffer == kNone) return;
  Buffer& buffer = buffers_[static_cast<size_t>(version.buffer)];
  if (--buffer.living == 0) sink->Release(version.buffer, buffer.first_value);
}

// A sink of Replay that measures the peak and the cost.
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

  // Measures a step with `gradients` in memory, which the replay does not track.
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
