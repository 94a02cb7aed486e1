// What sequences in slots have in common (RunSequence, OffloadSequence). Lists of slots ascend.
//
// A version of a value is in memory from the slot that makes it on. A read sees the last version
// that was made before it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lib/problem/runs/run_problem.h"

namespace ckplan {

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

}  // namespace ckplan
