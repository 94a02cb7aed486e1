// A sequence of runs and loads (lib/problem/runs/runs_and_loads.h) that changes one action at a
// time.
//
// Always knows the memory that the sequence needs with instant copies. That is a lower bound, so
// most changes can be rejected at once. For the others, Task() tells a CopyScheduler what is away
// and when.
//
// As in RunSequence, actions are in slots, some of which are free, and Revert undoes all changes
// since the last Commit. Changes are not checked for leaving a valid plan.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "lib/planning/algorithms/best/run_sequence.h"
#include "lib/problem/runs/copy_schedule.h"
#include "lib/problem/runs/run_problem.h"
#include "lib/problem/runs/runs_and_loads.h"

namespace ckplan {

class OffloadSequence {
 public:
  // Keeps a reference to `problem`.
  OffloadSequence(const RunProblem& problem, std::span<const int32_t> steps);

  RunsAndLoads ToSteps() const;
  int64_t cost() const { return cost_; }  // The total cost of all runs.
  int32_t step_count() const { return step_count_; }
  int32_t slot_count() const { return static_cast<int32_t>(step_at_.size()); }
  // As of the last Update.
  int64_t peak() const { return tree_.max(); }
  int32_t PeakSlot() const { return tree_.ArgMax(); }
  // Returns what to copy, and the memory of each run. Loads do not count as runs.
  const CopyTask& Task();

  int32_t StepAt(int32_t slot) const { return step_at_[At(slot)]; }  // -1: free.
  // Return slots in ascending order.
  std::span<const int32_t> SlotsOf(int32_t step) const { return slots_of_[At(step)]; }
  std::span<const int32_t> MadeAt(int32_t value) const { return made_at_[At(value)]; }
  std::span<const int32_t> ReadAt(int32_t value) const { return read_at_[At(value)]; }
  bool IsLoaded(int32_t value) const { return !SlotsOf(LoadOf(problem_, value)).empty(); }
  // Returns the loads and the repeated operations, in no particular order.
  std::span<const int32_t> Extra() const { return extra_.numbers(); }

  // Returns the slot after which all reads of the action have been computed once.
  int32_t ReadyAt(int32_t step) const;
  // Returns the index of the version that a read at `slot` sees: the last one before it.
  size_t VersionAt(int32_t value, int32_t slot) const;
  // Tells whether a version written by the action in `slot` is read or lives to the end.
  bool IsRead(int32_t slot) const;
  // Return the slots [begin, end) in which version `k` is in memory. Since a load itself takes no
  // time, a loaded version is in memory from its first read on; one that nothing reads never is.
  int32_t BeginOf(int32_t value, size_t k) const;
  int32_t EndOf(int32_t value, size_t k) const;

  void Insert(int32_t step, int32_t slot);  // The slot must be free.
  void Erase(int32_t slot);
  // Updates the peak after changes.
  void Update() { tree_.Apply(); }
  void Commit();
  void Revert();  // Call Update before this.
  bool has_changes() const { return !changes_.empty(); }

  // Spreads the actions evenly over the slots. Requires that no changes are pending.
  void Respace();

 private:
  struct Change {
    int32_t step;
    int32_t slot;
    bool is_insertion;
  };

  std::span<const int32_t> ReadsOf(int32_t step) const {
    return IsLoad(problem_, step) ? std::span<const int32_t>() : problem_.reads[step];
  }
  std::span<const int32_t> WritesOf(int32_t step) const {
    return IsLoad(problem_, step) ? std::span(&values_[At(LoadedBy(problem_, step))], 1)
                                  : problem_.writes[step];
  }
  int32_t FirstReadOf(int32_t value, size_t k) const;  // A slot, or -1.
  void Load(std::span<const int32_t> steps);
  void ListRuns();
  Absence AbsenceOf(int32_t value) const;
  void Place(int32_t step, int32_t slot, bool is_insertion);
  void Count(int32_t value, size_t k, int64_t sign);
  void CountAround(int32_t step, int32_t slot, bool is_present, int64_t sign);
  void CountWorkspace(int32_t step, int32_t slot, int64_t sign);

  const RunProblem& problem_;
  std::vector<int32_t> values_;  // 0, 1, 2, …
  std::vector<bool> may_be_overwritten_;
  std::vector<int32_t> step_at_;
  std::vector<std::vector<int32_t>> slots_of_;
  std::vector<std::vector<int32_t>> made_at_;
  std::vector<std::vector<int32_t>> read_at_;
  NumberSet extra_;
  std::vector<int32_t> loaded_;  // The loaded values, in about the order of Task.
  int64_t cost_ = 0;
  int32_t step_count_ = 0;
  std::vector<Change> changes_;
  PeakTree tree_;
  CopyTask task_;
  std::vector<int32_t> run_of_slot_;  // The number of the first run at or after a slot.
};

}  // namespace ckplan
