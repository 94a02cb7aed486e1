// A sequence of runs that can be changed one run at a time, and whose peak is always up to date.
//
// Runs are in slots, some of which are free, so a run can be inserted between two others without
// moving them. The sequence stores the slots of each operation's runs and of the runs that read
// each value. They determine the lifetimes of a value's versions by the rules of flat_simulation.h.
// A change alters the lifetimes of the run's reads and writes, and a PeakTree updates the peak.
// Revert undoes all changes since the last Commit.
//
// Changes may make the plan invalid; separate functions return which changes are allowed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "lib/problem/runs/run_problem.h"

namespace ckplan {

// Shared by sequences in slots (RunSequence, OffloadSequence). Lists of slots ascend.
//
// A version of a value is in memory from the slot that writes it. A read sees the last version
// written before it.

// A set of numbers below a limit, in no particular order.
class NumberSet {
 public:
  void Reset(size_t limit) {
    numbers_.clear();
    place_.assign(limit, -1);
  }
  std::span<const int32_t> numbers() const { return numbers_; }

  void Set(int32_t number, bool is_in) {
    int32_t& place = place_[At(number)];
    if (is_in == (place >= 0)) return;
    if (is_in) {
      place = static_cast<int32_t>(numbers_.size());
      numbers_.push_back(number);
      return;
    }
    numbers_[At(place)] = numbers_.back();
    place_[At(numbers_.back())] = place;
    numbers_.pop_back();
    place = -1;
  }

 private:
  std::vector<int32_t> numbers_;
  std::vector<int32_t> place_;  // Per number: its position in numbers_, or -1.
};

// Returns the index of the version that a read at `slot` sees. At least one must come before it.
inline size_t VersionSeenAt(const std::vector<int32_t>& made, int32_t slot) {
  size_t k = made.size() - 1;
  while (made[k] >= slot) --k;
  return k;
}

// Returns the slot of the last read of version `k`, or -1. A run can read the version before the
// one that it writes.
inline int32_t LastReadOf(const std::vector<int32_t>& made, const std::vector<int32_t>& reads,
                          size_t k) {
  auto end = reads.end();  // Reads from here on see a later version.
  if (k + 1 < made.size()) {
    while (end != reads.begin() && *(end - 1) > made[k + 1]) --end;
  }
  return end != reads.begin() && *(end - 1) >= made[k] ? *(end - 1) : -1;
}

// Maintains the largest prefix sum of a row of numbers, a few of which change at a time.
//
//   slot            0   1   2   3   4          8 bytes live from slot 1 to slot 4
//   change          5   8   .  -5  -8
//   bytes there     5  13  13   8   0          max() is 13, ArgMax() is 1
//
// Each node of a binary tree holds the sum of its slots and the largest prefix sum within them. A
// change moves up the tree until it no longer makes a difference, mostly after a few levels: a move
// within a subtree leaves its sum unchanged, and its largest prefix sum is seldom the largest
// further up. Overwritten nodes are recorded, so that writing them back undoes a change.
class PeakTree {
 public:
  // Takes O(number of slots). Earlier additions are discarded.
  void Build(std::span<const int64_t> changes);

  // Records a change for the next Apply.
  void Add(int32_t slot, int64_t change) { pending_.emplace_back(slot, change); }
  void Apply();
  int64_t applied() const { return applied_; }  // Changes applied since construction.
  // Commit keeps, and Revert undoes, the changes applied since the last call of either.
  void Commit() { overwritten_.clear(); }
  void Revert();

  int64_t max() const { return maxima_[1]; }
  // The changes by slot; those after the last slot are 0.
  std::span<const int64_t> changes() const { return std::span(sums_).subspan(leaf_count_); }
  int32_t ArgMax() const;  // The first slot whose prefix sum is the largest.

 private:
  struct Node {
    int64_t sum = 0;
    int64_t max = 0;  // The maximum over nonempty prefixes.
    bool operator==(const Node&) const = default;
  };

  Node NodeAt(size_t node) const { return {sums_[node], maxima_[node]}; }
  void SetNode(size_t node, const Node& to) {
    sums_[node] = to.sum;
    maxima_[node] = to.max;
  }
  // Returns the largest prefix sum of a parent, given its left child.
  int64_t MaxOfBoth(size_t left) const {
    return std::max(maxima_[left], sums_[left] + maxima_[left + 1]);
  }
  Node Join(size_t parent) const {
    const size_t left = 2 * parent;
    return {sums_[left] + sums_[left + 1], MaxOfBoth(left)};
  }
  void SortPending();
  void ApplyToLeaves();

  size_t leaf_count_ = 0;  // A power of two.
  // By node: the root is 1, and leaf i is leaf_count_ + i. Two separate arrays, so that the changes
  // of all slots can be read quickly.
  std::vector<int64_t> sums_;
  std::vector<int64_t> maxima_;
  std::vector<std::pair<int32_t, int64_t>> pending_;
  int64_t applied_ = 0;
  std::vector<size_t> changed_;  // The nodes of one level, ascending.
  std::vector<std::pair<size_t, Node>> overwritten_;
};

class RunSequence {
 public:
  // Keeps a reference to `problem`. `runs` must be a plan.
  RunSequence(const RunProblem& problem, std::span<const OpId> runs);

  Runs ToRuns() const;
  int64_t cost() const { return cost_; }
  int32_t run_count() const { return run_count_; }
  int32_t slot_count() const { return static_cast<int32_t>(op_at_.size()); }
  // As of the last Update. The peak includes the bytes of other micro-batches.
  int64_t peak() const { return tree_.max() + problem_.others.count * saved_; }
  int32_t PeakSlot() const { return tree_.ArgMax(); }
  // The slot of OtherMicroBatches::loss. Only with other micro-batches.
  int32_t LossSlot() const { return runs_of_[At(problem_.others.loss)].front(); }

  int32_t OpAt(int32_t slot) const { return op_at_[static_cast<size_t>(slot)]; }  // -1: free.
  // Return slots in ascending order.
  std::span<const int32_t> RunsOf(int32_t op) const { return runs_of_[static_cast<size_t>(op)]; }
  std::span<const int32_t> ReadsOf(int32_t value) const {
    return reads_of_[static_cast<size_t>(value)];
  }
  // Returns the repeated operations, in no particular order.
  std::span<const int32_t> Repeated() const { return repeated_.numbers(); }

  // Returns the slot after which the producers of all the operation's reads have run.
  int32_t ReadsReadyAt(int32_t op) const;
  // The slots strictly between these are open to the operation's run `k`, which stays at the same
  // place among the operation's runs.
  struct Window {
    int32_t after;
    int32_t before;
  };
  Window WindowOf(int32_t op, size_t k) const;
  // Tells whether all reads still find their value, and needed operations still run, without run
  // `k`.
  bool MayErase(int32_t op, size_t k) const;
  // Returns the index of the run whose version a read at `slot` sees: the last one before it.
  size_t VersionAt(int32_t op, int32_t slot) const;
  // Tells whether a run reads the version of run `k`, or it lives to the end.
  bool IsRead(int32_t op, size_t k) const;
  // Returns the end of the slots [its run, end) in which version `k` is in memory.
  int32_t EndOf(int32_t value, size_t k) const;

  void Insert(int32_t op, int32_t slot);  // The slot must be free.
  void Erase(int32_t slot);
  void Shift(int32_t from, int32_t to);  // `to` must be free and within the run's window.
  // Returns the operations whose runs changed since the last Commit; may list some twice.
  std::vector<int32_t> Changed() const;
  // Updates the peak after changes.
  void Update() { tree_.Apply(); }
  // The number of memory changes over all updates: a measure of the moves' cost.
  int64_t changes_made() const { return tree_.applied(); }
  void Commit();
  void Revert();  // Call Update before this.

  // Spreads the runs evenly over the slots, with room for at least as many more. Requires that no
  // changes are pending. O(slots + reads and writes of all runs).
  void Respace();

 private:
  struct Change {
    int32_t op;
    int32_t from;  // -1 if the run was inserted.
    int32_t to;    // -1 if the run was erased.
  };

  void Count(int32_t value, size_t k, int64_t sign);
  bool IsSaved(int32_t value, size_t k) const;
  int64_t SumSaved() const;
  void CountAround(int32_t op, int32_t slot, int64_t sign);
  void CountWrites(int32_t op, size_t first, size_t end, int64_t sign);
  void CountWorkspace(int32_t op, int32_t slot, int64_t sign);
  void Place(int32_t op, int32_t from, int32_t to);
  void Load(std::span<const OpId> runs);

  const RunProblem& problem_;
  std::vector<bool> may_be_overwritten_;  // By value: some operation may write in its place.
  std::vector<int32_t> op_at_;
  std::vector<std::vector<int32_t>> runs_of_;
  std::vector<std::vector<int32_t>> reads_of_;
  NumberSet repeated_;
  int64_t cost_ = 0;
  int32_t run_count_ = 0;
  std::vector<Change> changes_;  // Since the last Commit.
  PeakTree tree_;
  // The bytes that each other micro-batch holds, now and at the last Commit.
  int64_t saved_ = 0;
  int64_t committed_saved_ = 0;
};

}  // namespace ckplan
