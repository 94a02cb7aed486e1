// Decides when values are copied to the host and back, given a sequence of runs and the reads
// between which each value is away, and computes the total time.
//
//   run       a  b  c  d  e  loss  E  D  C          v, produced by b and read by c, is back for C
//   out v           ######
//   drop v                  |                       when the copy is complete; or earlier, after a
//   in v                                  ######    wait, if memory is needed
//
// Rules. A copy out begins when the value exists and the link is free; the value with the earliest
// last read goes first. A value is dropped when its copy is complete; if memory is needed earlier,
// the runs wait for the copy. Copies back are in the order of their first reads. Each begins as
// late as these reads allow, minus a margin, and only if memory has room for it until its first
// read.
//
// The steps have the meaning of lib/problem/schedule: a run's memory depends only on the order of
// the steps, and each link runs one copy at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "lib/problem/cost/link.h"

namespace ckplan {

// A value that is copied to the host and back. Runs are numbered from 0.
struct Absence {
  int32_t value = -1;
  int64_t bytes = 0;
  int32_t made = 0;        // The run that produces the version that is copied out.
  int32_t last_read = 0;   // The last run that reads that version, or `made`.
  int32_t gone_by = 0;     // The value must be dropped before this run, which recomputes it or is
                           // `first_read`.
  int32_t back_after = 0;  // The copy back must not begin before the end of this run.
  int32_t first_read = 0;  // The first run that reads the value after the copy back.
};

struct CopyTask {
  std::vector<int64_t> cost;  // By run, in ns.
  // By run: the memory it needs if each absent value is dropped right after its last read and
  // allocated again right before its first read.
  std::vector<int64_t> bytes;
  std::vector<Absence> absences;  // Sorted by `first_read`.
};

enum class CopyStepKind : uint8_t { kOut, kDrop, kIn };

struct CopyStep {
  CopyStepKind kind = CopyStepKind::kOut;
  int32_t value = -1;
  int32_t before_run = 0;  // The step is right before this run.
};

struct CopyPlan {
  bool fits = false;            // False if a run needs more than the budget.
  int64_t end = 0;              // The time at which the last run ends.
  int32_t runs = 0;             // The number of scheduled runs.
  int64_t host_peak = 0;        // In bytes.
  std::vector<CopyStep> steps;  // In the order of the plan.
};

// Reuses its working memory between tasks.
class CopyScheduler {
 public:
  // The scheduler assumes that copies back take `lead_percent` of their time when it decides when
  // to begin them.
  explicit CopyScheduler(const Link& link, int64_t lead_percent = 100)
      : link_(link), lead_percent_(lead_percent) {}

  // O(runs + absences · runs during each copy). If the plan would end after `latest_end`, it may be
  // incomplete; its `end` is then a lower bound above `latest_end`.
  const CopyPlan& Run(const CopyTask& task, int64_t budget,
                      int64_t latest_end = std::numeric_limits<int64_t>::max());

 private:
  enum class State : uint8_t { kWaiting, kUnderWay, kDropped };

  // Three linked lists of absences per run: the first absence for a run, the next one for an
  // absence, or -1.
  struct Events {
    int32_t made = -1;  // Produced by the previous run.
    int32_t read = -1;  // Read for the last time by the previous run.
    int32_t gone = -1;  // Must be dropped before this run.
    bool is_any() const { return (made & read & gone) >= 0; }
  };

  void Prepare();
  void ListEvents();
  void FindLatestStarts();
  int64_t TimeOf(CopyWay way, const Absence& absence) const {
    return link_.TimeOf(way, Bytes(absence.bytes)).count();
  }
  void ProcessEvents(int32_t run);
  void DropComplete(int32_t run);
  void BringBack(int32_t run);
  void Read(int32_t run);
  bool CanBringBack(int32_t absence, int32_t run);
  void SendPending(int32_t run);
  int32_t NextPending();
  bool MakeRoom(int32_t run);
  void Send(int32_t absence, int32_t run);
  void Drop(int32_t absence, int32_t run);
  void EnsureDropped(int32_t absence, int32_t run);
  void StartBack(int32_t absence, int32_t run);
  void Add(CopyStepKind kind, int32_t absence, int32_t run);
  bool IsHeldUnderWay(int32_t absence) const {
    const auto at = static_cast<size_t>(absence);
    return is_held_[at] && state_[at] == State::kUnderWay;
  }
  const Absence& At(int32_t absence) const { return task_->absences[static_cast<size_t>(absence)]; }

  const Link link_;
  int64_t lead_percent_;
  int64_t budget_ = 0;
  const CopyTask* task_ = nullptr;
  CopyPlan plan_;
  std::vector<int64_t> bytes_;  // By run, including values that are copied back early.
  std::vector<int64_t> start_;  // By run: its start without waiting.
  // By absence, on the clock of `start_`, with a sentinel at the end.
  std::vector<int64_t> latest_start_;
  std::vector<State> state_;
  std::vector<int64_t> ready_;  // By absence: the end of its current copy.
  std::vector<Events> events_;  // By run.
  std::vector<Events> next_;    // By absence.
  size_t next_back_ = 0;        // The first absence whose copy back has not begun.
  size_t next_read_ = 0;        // The first absence that has not been read since its copy back.
  std::vector<std::pair<int32_t, int32_t>> pending_;  // A heap of (last read, absence).
  std::vector<bool> is_held_;                         // By absence: it has had its last read.
  int64_t held_bytes_ = 0;  // The bytes of held absences that are not dropped yet.
  // Copies out by the time at which they complete; those before `next_sent_` are complete.
  std::vector<std::pair<int64_t, int32_t>> sent_;
  size_t next_sent_ = 0;
  int32_t full_run_ = -1;  // The run that had no room for the next copy back, or -1.
  int64_t host_bytes_ = 0;
  int64_t now_ = 0;
  int64_t out_free_ = 0;
  int64_t in_free_ = 0;
};

}  // namespace ckplan
