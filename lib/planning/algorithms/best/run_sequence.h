// A sequence of runs that changes one run at a time, with its peak always known.
//
// Runs are in slots, only some of which are used, so a run can be inserted between two others
// without moving them. Each operation knows the slots of its runs, and each value those of the runs
// that read it. The lifetimes of a value's versions follow from these, by the rules of
// flat_simulation.h. A change alters the lifetimes of the run's reads and writes, and a PeakTree
// updates the peak. All changes since the last Commit are undone together.
//
// Changes are not checked for leaving a valid plan; separate functions say which are allowed.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lib/planning/algorithms/best/peak_tree.h"
#include "lib/problem/runs/run_problem.h"

namespace ckplan {

class RunSequence {
 public:
  // Keeps a reference to `problem`. `runs` must be a plan.
  RunSequence(const RunProblem& problem, std::span<const OpId> runs);

  Runs ToRuns() const;
  int64_t cost() const { return cost_; }
  int32_t run_count() const { return run_count_; }
  int32_t slot_count() const { return static_cast<int32_t>(op_at_.size()); }
  // As of the last Update.
  int64_t peak() const { return tree_.max(); }
  int32_t PeakSlot() const { return tree_.ArgMax(); }

  int32_t OpAt(int32_t slot) const { return op_at_[static_cast<size_t>(slot)]; }  // -1: free.
  // Return slots in ascending order.
  std::span<const int32_t> RunsOf(int32_t op) const { return runs_of_[static_cast<size_t>(op)]; }
  std::span<const int32_t> ReadsOf(int32_t value) const {
    return reads_of_[static_cast<size_t>(value)];
  }
  // Returns the operations that run more than once, in no particular order.
  std::span<const int32_t> Repeated() const { return repeated_.numbers(); }

  // Returns the slot after which the operation can run: the makers of all its reads have run there.
  int32_t ReadsReadyAt(int32_t op) const;
  // The operation's run number `k` can be moved to slots strictly between these. It stays at the
  // same place among the operation's runs.
  struct Window {
    int32_t after;
    int32_t before;
  };
  Window WindowOf(int32_t op, size_t k) const;
  // Returns whether, without run number `k`, all reads still find their value, and needed
  // operations still run.
  bool MayErase(int32_t op, size_t k) const;
  // Returns the number of the run whose version a read at `slot` sees: the last one before it.
  size_t VersionAt(int32_t op, int32_t slot) const;
  // Returns whether a run reads the version of run number `k`, or the version lives to the end.
  bool IsRead(int32_t op, size_t k) const;
  // Returns the end of the slots [its run, end) in which version number `k` is in memory.
  int32_t EndOf(int32_t value, size_t k) const;

  void Insert(int32_t op, int32_t slot);  // The slot must be free.
  void Erase(int32_t slot);
  void Shift(int32_t from, int32_t to);  // `to` must be free and within the run's window.
  // Returns the operations whose runs have changed since the last Commit, some more than once.
  std::vector<int32_t> Changed() const;
  // Updates the peak after changes.
  void Update() { tree_.Apply(); }
  // The changes of memory that all updates together made: what the moves have cost.
  int64_t changes_made() const { return tree_.applied(); }
  void Commit();
  void Revert();  // Call Update before this.

  // Spreads the runs evenly over the slots, with room for at least as many more runs. There must be
  // no changes to undo. O(slots + reads and writes of all runs).
  void Respace();

 private:
  struct Change {
    int32_t op;
    int32_t from;  // -1 if the run was inserted.
    int32_t to;    // -1 if the run was erased.
  };

  void Count(int32_t value, size_t k, int64_t sign);
  void CountAround(int32_t op, int32_t slot, int64_t sign);
  void CountWrites(int32_t op, size_t first, size_t end, int64_t sign);
  void CountWorkspace(int32_t op, int32_t slot, int64_t sign);
  void Place(int32_t op, int32_t from, int32_t to);
  void Load(std::span<const OpId> runs);

  const RunProblem& problem_;
  std::vector<bool> may_be_taken_over_;  // Per value: some operation writes in its place.
  std::vector<int32_t> op_at_;
  std::vector<std::vector<int32_t>> runs_of_;
  std::vector<std::vector<int32_t>> reads_of_;
  NumberSet repeated_;
  int64_t cost_ = 0;
  int32_t run_count_ = 0;
  std::vector<Change> changes_;  // The changes since the last Commit.
  PeakTree tree_;
};

}  // namespace ckplan
