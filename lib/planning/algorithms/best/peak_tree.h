// Maintains the largest prefix sum of a row of numbers that change a few at a time.
//
//   slot            0   1   2   3   4          8 bytes live from slot 1 to slot 4
//   change          5   8   .  -5  -8
//   bytes there     5  13  13   8   0          max() is 13, ArgMax() is 1
//
// Each node of a binary tree holds the sum of its slots and the largest prefix sum within them. A
// change moves up the tree until it makes no difference any more, mostly after a few levels: a move
// within a subtree leaves its sum unchanged, and its largest prefix sum is seldom the largest
// further up. Overwritten nodes are recorded, so that writing them back undoes a change.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "lib/problem/runs/run_problem.h"

namespace ckplan {

// What sequences in slots have in common (RunSequence, OffloadSequence). Lists of slots ascend.
//
// A version of a value is in memory from the slot that makes it on. A read sees the last version
// that was made before it.

// Some of the numbers below a limit, in no particular order.
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

// Returns the number of the version that a read at `slot` sees. One must have been made before.
inline size_t VersionSeenAt(const std::vector<int32_t>& made, int32_t slot) {
  size_t k = made.size() - 1;
  while (made[k] >= slot) --k;
  return k;
}

// Returns the slot of the last read of version number `k`, or -1. A run can read the version before
// the one that it makes.
inline int32_t LastReadOf(const std::vector<int32_t>& made, const std::vector<int32_t>& reads,
                          size_t k) {
  auto end = reads.end();  // Reads from here on see a later version.
  if (k + 1 < made.size()) {
    while (end != reads.begin() && *(end - 1) > made[k + 1]) --end;
  }
  return end != reads.begin() && *(end - 1) >= made[k] ? *(end - 1) : -1;
}

class PeakTree {
 public:
  // Takes O(number of slots). Earlier additions are discarded.
  void Build(std::span<const int64_t> changes);

  // Records a change for the next Apply.
  void Add(int32_t slot, int64_t change) { pending_.emplace_back(slot, change); }
  void Apply();
  int64_t applied() const { return applied_; }  // The changes applied since the object was made.
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
  // Returns the largest prefix sum of a parent whose left child is `left`.
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
  // By node: the root is 1, and leaf i is leaf_count_ + i. They are apart so that the changes of
  // all slots can be read quickly.
  std::vector<int64_t> sums_;
  std::vector<int64_t> maxima_;
  std::vector<std::pair<int32_t, int64_t>> pending_;
  int64_t applied_ = 0;
  std::vector<size_t> changed_;  // The nodes of one level, ascending.
  std::vector<std::pair<size_t, Node>> overwritten_;
};

}  // namespace ckplan
