// The states that the dynamic program of lower_set_dp.h reaches at one set.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <vector>

#include "lib/base/units.h"
#include "lib/planning/algorithms/kusumoto/fitting_segments.h"

namespace ckplan {

// The state (t, m) of Alg. 1. Its key represents the overhead: see overhead_bound.h.
struct State {
  int64_t key = 0;
  Bytes cached = kNoBytes;
  int32_t from_set = -1;
  int32_t from_state = -1;

  auto order_at_key() const { return std::tuple(cached, from_set, from_state); }
  auto order() const { return std::tuple(key, cached, from_set, from_state); }
};

// Collects states and keeps those that no other state beats. If there are few keys, the list has a
// column for each of them, as in the paper's table; otherwise it sorts.
class StateList {
 public:
  // All keys must be in [min_key, min_key + key_count).
  StateList(int64_t min_key, int64_t key_count) : min_key_(min_key) {
    if (key_count <= kMaxColumns) columns_.resize(static_cast<size_t>(key_count));
    ClearColumns();
  }

  void Clear() {
    states_.clear();
    sorted_ = 0;
  }

  // Keys within the same multiple of `unit` count as equal: see "Refinement" in lower_set_dp.h.
  // With columns, all keys are distinguished.
  void Add(const State& state, int64_t unit) {
    if (!columns_.empty()) return AddToColumn(state);
    if (IsBeaten(state)) return;
    states_.push_back(state);
    if (states_.size() > 2 * sorted_ + kMaxUnsorted) KeepBest(unit);
  }

  void KeepBest(int64_t unit) {
    if (!columns_.empty()) return TakeColumns();
    std::sort(states_.begin(), states_.end(),
              [](const State& a, const State& b) { return a.order() < b.order(); });
    size_t kept = 0;
    for (const State& state : states_) {
      if (kept > 0 && state.cached >= states_[kept - 1].cached) continue;
      if (kept > 0 && UnitsOf(states_[kept - 1].key, unit) == UnitsOf(state.key, unit)) {
        const int64_t least_key = states_[kept - 1].key;
        states_[kept - 1] = state;
        states_[kept - 1].key = least_key;
      } else {
        states_[kept++] = state;
      }
    }
    states_.resize(kept);
    sorted_ = kept;
  }

  // Sorted by ascending keys, and so by descending memory, after KeepBest.
  const std::vector<State>& states() const { return states_; }

 private:
  static constexpr size_t kMaxUnsorted = 256;
  static constexpr int64_t kMaxColumns = int64_t{1} << 14;

  static int64_t UnitsOf(int64_t key, int64_t unit) {
    return key >= 0 ? key / unit : -((-key + unit - 1) / unit);
  }

  void AddToColumn(const State& state) {
    const auto column = static_cast<size_t>(state.key - min_key_);
    State& best = columns_[column];
    if (state.order_at_key() >= best.order_at_key()) return;
    best = state;
    first_column_ = std::min(first_column_, column);
    end_column_ = std::max(end_column_, column + 1);
  }

  void TakeColumns() {
    Bytes least = kNoBytes;
    for (size_t column = first_column_; column < end_column_; ++column) {
      State& state = columns_[column];
      if (state.cached < least) {
        least = state.cached;
        states_.push_back(state);
      }
      state = {};
    }
    ClearColumns();
  }

  // Marks all columns as unused.
  void ClearColumns() {
    first_column_ = columns_.size();
    end_column_ = 0;
  }

  // Compares with the sorted states: the last one whose key is not larger has the least memory of
  // these.
  bool IsBeaten(const State& state) const {
    const auto end = states_.begin() + static_cast<std::ptrdiff_t>(sorted_);
    const auto after = std::upper_bound(states_.begin(), end, state.key,
                                        [](int64_t key, const State& s) { return key < s.key; });
    if (after == states_.begin()) return false;
    const State& best = *std::prev(after);
    return best.cached < state.cached || (best.cached == state.cached && best.key < state.key);
  }

  const int64_t min_key_;
  std::vector<State> columns_;  // An unused column has no `from_set`.
  size_t first_column_ = 0;     // The first used column; `end_column_` is after the last one.
  size_t end_column_ = 0;
  std::vector<State> states_;
  size_t sorted_ = 0;  // The number of states, from the first, that KeepBest has kept.
};

}  // namespace ckplan
