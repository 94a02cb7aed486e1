// A sequence of runs that is changed a run at a time, with its peak always known.
//
// Runs stand in slots, of which only some are taken: a run can be put between two others without
// moving them. For each operation the slots of its runs are known, and for each value those of the
// runs that read it; from these follow the lives of its versions, by the rules of
// flat_simulation.h. A change alters the lives of what the run reads and writes, and a PeakTree the
// peak. Changes are undone together: those since the last Commit.
//
// Nothing here asks whether a change leaves a plan; the functions that say what is allowed do.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lib/algorithms/best/peak_tree.h"
#include "lib/joint/run_problem.h"

namespace ckplan {

class RunSequence {
 public:
  // Keeps a reference to `problem`. `runs` is a plan.
  RunSequence(const RunProblem& problem, std::span<const OpId> runs);

  Runs ToRuns() const;
  int64_t cost() const { return cost_; }
  int32_t run_count() const { return run_count_; }
  int32_t slot_count() const { return static_cast<int32_t>(op_at_.size()); }
  // Both as of the last Update.
  int64_t peak() const { return tree_.max(); }
  int32_t PeakSlot() const { return tree_.ArgMax(); }

  int32_t OpAt(int32_t slot) const { return op_at_[static_cast<size_t>(slot)]; }  // -1: free.
  // Slots, ascending.
  std::span<const int32_t> RunsOf(int32_t op) const { return runs_of_[static_cast<size_t>(op)]; }
  std::span<const int32_t> ReadsOf(int32_t value) const {
    return reads_of_[static_cast<size_t>(value)];
  }
  // Operations that run more than once, in no order.
  std::span<const int32_t> Repeated() const { return repeated_; }

  // What a run of the operation needs: all slots behind this one are behind a run of the makers of
  // all that it reads.
  int32_t ReadsReadyAt(int32_t op) const;
  // Slots strictly between which the operation's run number `k` can be moved. Its place among the
  // runs of the operation stays.
  struct Window {
    int32_t after;
    int32_t before;
  };
  Window WindowOf(int32_t op, size_t k) const;
  // Whether all reads find their value without run number `k`, and what is needed still runs.
  bool MayErase(int32_t op, size_t k) const;
  // Number of the run that makes what is read at `slot`: the last before it.
  size_t VersionAt(int32_t op, int32_t slot) const;
  // Whether anything reads what run number `k` makes, or it lives to the end.
  bool IsRead(int32_t op, size_t k) const;
  // Slots in which version number `k` is in memory: [its run, end).
  int32_t EndOf(int32_t value, size_t k) const;

  void Insert(int32_t op, int32_t slot);  // The slot is free.
  void Erase(int32_t slot);
  void Shift(int32_t from, int32_t to);  // `to` is free and within the run's window.
  // The operations whose runs have changed since the last Commit, some more than once.
  std::vector<int32_t> Changed() const;
  // Brings the peak up to date with the changes.
  void Update() { tree_.Apply(); }
  void Commit();
  void Revert();  // After Update.

  // Spreads the runs evenly over the slots, with slots for as many runs again and more. To be
  // called when there are no changes to undo. O(slots + reads and writes of all runs).
  void Respace();

 private:
  struct Change {
    int32_t op;
    int32_t from;  // -1: inserted.
    int32_t to;    // -1: erased.
  };

  void Count(int32_t value, size_t k, int64_t sign);
  void CountAround(int32_t op, int32_t slot, int64_t sign);
  void CountWrites(int32_t op, size_t first, size_t end, int64_t sign);
  void CountWorkspace(int32_t op, int32_t slot, int64_t sign);
  void Place(int32_t op, int32_t from, int32_t to);
  void SetRepeated(int32_t op, bool is_repeated);
  void Load(std::span<const OpId> runs);

  const RunProblem& problem_;
  std::vector<bool> may_be_taken_over_;  // Of values: some operation writes in their place.
  std::vector<int32_t> op_at_;
  std::vector<std::vector<int32_t>> runs_of_;
  std::vector<std::vector<int32_t>> reads_of_;
  std::vector<int32_t> repeated_;
  std::vector<int32_t> repeated_at_;  // Of operations: where they stand in repeated_, or -1.
  int64_t cost_ = 0;
  int32_t run_count_ = 0;
  std::vector<Change> changes_;  // Since the last Commit.
  PeakTree tree_;
};

}  // namespace ckplan
