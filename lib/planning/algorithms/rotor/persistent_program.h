// The dynamic program over persistent schedules of a chain, for one amount of memory.
//
// C(s, t, m) is the least forward time to run stages s to t forward and backward with m slots of
// memory in addition to the input of s, given the gradient of t's output. The paper's recursion, in
// our words:
//
//   C(s, s, m) = u_s                                             F_all s, backward s
//   C(s, t, m) = min of
//     u_s + C(s+1, t, m - saved_s)                               F_all s, ..., backward s
//     u_s + ... + u_{k-1} + C(k, t, m - output_{k-1}) + C(s, k-1, m)   for s < k <= t
//                                                                F_ck s, F_none to k - 1, ...
//
// Each case requires that the stages it runs fit in m. The time of backward runs is the same in
// all.
//
// Cost: O(n^3 m) time, O(n^2 m) memory for n stages.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lib/planning/algorithms/rotor/stages.h"

namespace ckplan {

// A run of a stage, forward or backward.
struct StageRun {
  size_t stage = 0;
  bool is_backward = false;
};

// LeastMemory returns the least memory in which the stages have a persistent schedule;
// MemoryToSaveAll returns the memory that F_all of every stage needs. Both are in the unit of the
// stages.
int64_t LeastMemory(std::span<const Stage> stages);
int64_t MemoryToSaveAll(std::span<const Stage> stages);

class PersistentProgram {
 public:
  // `stages` is measured in slots; there must be at least one stage.
  PersistentProgram(std::vector<Stage> stages, int64_t slots);

  bool is_feasible() const { return time() < kInfinite; }
  // Returns the time of all forward runs, including each stage's first run.
  int64_t time() const { return At(0, count_ - 1, slots_); }
  // Returns the runs of an optimal schedule, in order. Among several it prefers F_all, then the
  // earliest k.
  std::vector<StageRun> Runs() const;
  // Returns the memory that this schedule needs by the same rules, for the same stages in another
  // unit.
  int64_t PeakOf(std::span<const Stage> stages) const;

 private:
  static constexpr int64_t kInfinite = int64_t{1} << 60;
  static constexpr size_t kSaveAll = 0;

  size_t Row(size_t s, size_t t) const {
    return (s * count_ + t) * static_cast<size_t>(slots_ + 1);
  }
  int64_t At(size_t s, size_t t, int64_t slots) const {
    return cost_[Row(s, t) + static_cast<size_t>(slots)];
  }
  int64_t TimeBetween(size_t begin, size_t end) const {
    return time_before_[end] - time_before_[begin];
  }
  void Fill(size_t s, size_t t);
  void Offer(size_t s, size_t t, size_t k, int64_t need, int64_t enough);
  // Returns the first choice of the optimum: kSaveAll, or the k up to which it runs forward.
  size_t ChoiceAt(size_t s, size_t t, int64_t slots) const;
  void AddRuns(size_t s, size_t t, int64_t slots, std::vector<StageRun>* runs) const;
  int64_t PeakOf(std::span<const Stage> stages, size_t s, size_t t, int64_t slots) const;

  const std::vector<Stage> stages_;
  const size_t count_;
  const int64_t slots_;
  std::vector<int64_t> time_before_;
  std::vector<int64_t> cost_;
  std::vector<int64_t> enough_;  // [s * count_ + t]: the slots in which stages s to t all save all.
};

}  // namespace ckplan
