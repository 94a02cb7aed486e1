// Decides when values are copied to the host and back, for a sequence of runs in which it is known
// which values are away between which reads, and computes how long everything takes.
//
//   run       a  b  c  d  e  loss  E  D  C          v, made by b and read by c, comes back for C
//   out v           ######
//   drop v                  |                       at the end of the copy, or earlier, with a
//   wait, in v                            ######          if memory is needed
//
// Rules. A copy out begins as soon as the value is made and the link is free; of several values,
// that whose last read comes first is copied first. The value is dropped when its copy is complete,
// or when memory is needed, in which case the runs wait. Copies back are made in the order in which
// they are read. Each begins as late as the reads allow, earlier by a margin, and only if the
// memory up to its first read has room for it.
//
// The meaning of the steps is that of lib/problem/schedule: the memory that a run needs depends on
// the order of the steps only, and one copy at a time is under way on each link.
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
  int32_t made = 0;        // The run that makes the version that is copied out.
  int32_t last_read = 0;   // The last run that reads that version; `made` if none does.
  int32_t gone_by = 0;     // The value must be dropped before this run, which makes it again; at
                           // most `first_read`.
  int32_t back_after = 0;  // The copy back may not begin before this run has ended.
  int32_t first_read = 0;  // The first run that reads what is copied back.
};

struct CopyTask {
  std::vector<int64_t> cost;  // By run, in ns.
  // By run: the memory that it needs if every absent value is dropped right after its last read and
  // is allocated again right before its first read.
  std::vector<int64_t> bytes;
  std::vector<Absence> absences;  // By rising `first_read`.
};

enum class CopyStepKind : uint8_t { kOut, kDrop, kIn };

struct CopyStep {
  CopyStepKind kind = CopyStepKind::kOut;
  int32_t value = -1;
  int32_t before_run = 0;  // The step stands right before this run.
};

struct CopyPlan {
  bool fits = false;            // False: some run needs more than the budget.
  int64_t end = 0;              // The time at which the last run ends.
  int32_t runs = 0;             // The runs that are scheduled.
  int64_t host_peak = 0;        // In bytes.
  std::vector<CopyStep> steps;  // In the order of the plan.
};

// Reuses its working memory for every task.
class CopyScheduler {
 public:
  // Copies back take `lead_percent` of their time when the scheduler decides when to begin them.
  explicit CopyScheduler(const Link& link, int64_t lead_percent = 100)
      : link_(link), lead_percent_(lead_percent) {}

  // O(runs + absences · runs under way during each copy). A plan that would end after `latest_end`
  // may be incomplete; then its end is a lower bound that is later.
  const CopyPlan& Run(const CopyTask& task, int64_t budget,
                      int64_t latest_end = std::numeric_limits<int64_t>::max());

  void set_lead_percent(int64_t percent) { lead_percent_ = percent; }

 private:
  enum class State : uint8_t { kWaiting, kUnderWay, kDropped };

  // Absences in three lists for each run: the first of each for a run, or the next for an absence,
  // or -1.
  struct Events {
    int32_t made = -1;  // Those that the run before makes.
    int32_t read = -1;  // Those that it reads for the last time.
    int32_t gone = -1;  // Those that must be gone by this run.
    bool is_any() const { return (made & read & gone) >= 0; }
  };

  void Prepare();
  void ListEvents();
  void FindLatestStarts();
  int64_t TimeOf(CopyWay way, const Absence& absence) const {
    return link_.TimeOf(way, Bytes(absence.bytes)).count();
  }
  void TakeNew(int32_t run);
  void DropComplete(int32_t run);
  void BringBack(int32_t run);
  void Read(int32_t run);
  bool MayBringBack(int32_t absence, int32_t run);
  void SendPending(int32_t run);
  int32_t NextPending();
  bool MakeRoom(int32_t run);
  void Send(int32_t absence, int32_t run);
  void Drop(int32_t absence, int32_t run);
  void MakeGone(int32_t absence, int32_t run);
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
  std::vector<int64_t> bytes_;  // By run, with what is copied back early.
  std::vector<int64_t> start_;  // By run: its start if nothing waits.
  // By absence, on the clock of `start_`; then one for the end.
  std::vector<int64_t> latest_start_;
  std::vector<State> state_;
  std::vector<int64_t> ready_;  // By absence: when its copy under way is complete.
  std::vector<Events> events_;  // By run.
  std::vector<Events> next_;    // By absence.
  size_t next_back_ = 0;        // The first absence that is not being brought back yet,
  size_t next_read_ = 0;        // and the first of which nothing is read.
  std::vector<std::pair<int32_t, int32_t>> pending_;  // A heap of (last read, absence).
  std::vector<bool> is_held_;                         // By absence: it was read for the last time.
  int64_t held_bytes_ = 0;                            // They are held and not dropped yet.
  // Copies out by the time at which they are complete. Those before `next_sent_` are.
  std::vector<std::pair<int64_t, int32_t>> sent_;
  size_t next_sent_ = 0;
  int32_t full_run_ = -1;  // If set: there was no room at this run for the next copy back.
  int64_t host_bytes_ = 0;
  int64_t now_ = 0;
  int64_t out_free_ = 0;
  int64_t in_free_ = 0;
};

}  // namespace ckplan
