#include "lib/testing/best/brute_force_offload.h"

#include <algorithm>
#include <array>
#include <queue>
#include <unordered_map>
#include <utility>

#include "lib/base/check.h"

namespace ckplan {
namespace {

constexpr int kMaxValues = 12;

// Times are relative to the end of the last run or wait.
struct CopyState {
  uint16_t present = 0;  // Values in memory, including those being copied.
  uint16_t on_host = 0;  // Values that have been dropped after a complete copy to the host.
  uint16_t sending = 0;  // Values after their out and before the matching drop.
  uint16_t coming = 0;   // Values whose copy back is not complete.
  int16_t done = 0;      // The number of operations that have run.
  int16_t out_free = 0;
  int16_t in_free = 0;
  std::array<int16_t, kMaxValues> ends{};  // When each value's current copy ends.

  bool operator==(const CopyState&) const = default;
};

struct CopyStateHash {
  size_t operator()(const CopyState& state) const {
    uint64_t hash = 1469598103934665603U;
    const auto mix = [&](uint64_t part) { hash = (hash ^ part) * 0x9E3779B97F4A7C15U; };
    mix(uint64_t{state.present} << 48 | uint64_t{state.on_host} << 32 |
        uint64_t{state.sending} << 16 | state.coming);
    mix(static_cast<uint64_t>(state.done) << 32 | static_cast<uint64_t>(state.out_free) << 16 |
        static_cast<uint64_t>(state.in_free));
    for (const int16_t end : state.ends) mix(static_cast<uint64_t>(end) + 7);
    return hash >> 7;
  }
};

bool Has(uint16_t mask, int32_t value) { return (mask >> value & 1) != 0; }
uint16_t BitOf(int32_t value) { return static_cast<uint16_t>(1U << value); }

class OffloadSearch {
 public:
  OffloadSearch(const RunProblem& problem, const CopyTimes& times, std::span<const OpId> order,
                int64_t budget)
      : problem_(problem), times_(times), order_(order), budget_(budget) {
    CKPLAN_CHECK(problem.value_count <= kMaxValues, "the problem has at most 12 values");
    for (int32_t value = 0; value < problem.value_count; ++value) {
      if (problem.is_result[At(value)] && problem.producer[At(value)] >= 0)
        results_ |= BitOf(value);
    }
  }

  OffloadOptimum Run(size_t max_states) && {
    Reach(CopyState(), 0, -1, {});
    while (!queue_.empty()) {
      const auto [added, node] = queue_.top();
      queue_.pop();
      if (added > best_.at(nodes_[node].state).first) continue;
      const CopyState state = nodes_[node].state;
      if (IsEnd(state)) return {true, true, added, StepsTo(node)};
      if (nodes_.size() > max_states) return {};
      added_ = added;
      from_ = static_cast<int32_t>(node);
      AddMoves(state);
    }
    return {.is_known = true};
  }

 private:
  struct Node {
    CopyState state;
    int32_t from = -1;
    OffloadStep step;
  };

  bool IsEnd(const CopyState& state) const {
    return At(state.done) == order_.size() && state.sending == 0 &&
           (state.present & results_) == results_;
  }

  void AddMoves(const CopyState& state) {
    for (size_t i = 0; i < order_.size() && i <= At(state.done); ++i) {
      const bool has_run = i < At(state.done);
      if (!has_run || problem_.may_repeat[At(order_[i].index())]) {
        AddRun(state, order_[i].index(), !has_run);
      }
    }
    for (int32_t value = 0; value < problem_.value_count; ++value) {
      if (!times_.may_move[At(value)]) continue;
      if (Has(state.sending, value)) {
        AddDrop(state, value);
      } else if (Has(state.present, value)) {
        // A second copy to the host gains nothing.
        if (!Has(state.on_host, value)) AddOut(state, value);
      } else if (Has(state.on_host, value)) {
        AddIn(state, value);
      }
    }
  }

  void AddRun(const CopyState& state, int32_t op, bool is_first) {
    uint16_t reads = 0;
    for (const int32_t read : problem_.reads[op]) reads |= BitOf(read);
    uint16_t writes = 0;
    for (const int32_t write : problem_.writes[op]) writes |= BitOf(write);
    const bool writes_moving_value = (writes & (state.sending | state.coming)) != 0;
    if ((state.present & reads) != reads || writes_moving_value) return;
    const std::span<const int32_t> pairs = problem_.in_place[op];
    for (uint32_t choice = 0; choice < 1U << pairs.size() / 2; ++choice) {
      uint16_t reused = 0;
      int64_t saved = 0;
      for (size_t i = 0; i < pairs.size() / 2; ++i) {
        if ((choice >> i & 1) == 0) continue;
        reused |= BitOf(pairs[2 * i + 1]);
        saved += problem_.bytes[At(pairs[2 * i])];
      }
      if ((reused & state.sending) != 0) continue;
      const int64_t extra = problem_.workspace[At(op)] - saved;
      ForEachWayToFit(state, static_cast<uint16_t>(reads | writes), writes, extra,
                      [&](CopyState next) {
                        next.present = static_cast<uint16_t>(next.present & ~reused);
                        next.done = static_cast<int16_t>(next.done + (is_first ? 1 : 0));
                        const int64_t wait = LastEnd(next, reads & next.coming);
                        const int64_t cost = problem_.cost[At(op)];
                        Advance(&next, wait + cost, wait + (is_first ? 0 : cost),
                                {OffloadStep::Kind::kRun, op});
                      });
    }
  }

  void AddOut(CopyState state, int32_t value) {
    const int16_t end = static_cast<int16_t>(state.out_free + times_.out[At(value)]);
    state.sending |= BitOf(value);
    state.ends[At(value)] = state.out_free = end;
    if (times_.is_half_duplex) state.in_free = end;
    Advance(&state, 0, 0, {OffloadStep::Kind::kOut, value});
  }

  void AddDrop(CopyState state, int32_t value) {
    const int64_t wait = state.ends[At(value)];
    state.sending = static_cast<uint16_t>(state.sending & ~BitOf(value));
    state.present = static_cast<uint16_t>(state.present & ~BitOf(value));
    state.on_host |= BitOf(value);
    state.ends[At(value)] = 0;
    Advance(&state, wait, wait, {OffloadStep::Kind::kDrop, value});
  }

  void AddIn(const CopyState& state, int32_t value) {
    ForEachWayToFit(state, BitOf(value), BitOf(value), 0, [&](CopyState next) {
      const int16_t end = static_cast<int16_t>(next.in_free + times_.in[At(value)]);
      next.coming |= BitOf(value);
      next.ends[At(value)] = next.in_free = end;
      if (times_.is_half_duplex) next.out_free = end;
      Advance(&next, 0, 0, {OffloadStep::Kind::kIn, value});
    });
  }

  // Calls `take` with the state after each minimal set of drops that makes `added` and `extra`
  // bytes fit. Values in `needed` and values being copied are not dropped.
  template <typename Take>
  void ForEachWayToFit(const CopyState& state, uint16_t needed, uint16_t added, int64_t extra,
                       const Take& take) const {
    const auto with_added = static_cast<uint16_t>(state.present | added);
    const int64_t excess = BytesOf(with_added) + extra - budget_;
    const auto droppable =
        static_cast<uint16_t>(with_added & ~needed & ~state.sending & ~state.coming);
    for (uint16_t gone = droppable;; gone = static_cast<uint16_t>((gone - 1) & droppable)) {
      if (IsJustEnough(gone, excess)) {
        CopyState next = state;
        next.present = static_cast<uint16_t>(with_added & ~gone);
        take(next);
      }
      if (gone == 0) return;
    }
  }

  bool IsJustEnough(uint16_t gone, int64_t excess) const {
    const int64_t bytes = BytesOf(gone);
    if (bytes < excess) return false;
    for (int32_t value = 0; value < problem_.value_count; ++value) {
      if (Has(gone, value) && bytes - problem_.bytes[At(value)] >= excess) return false;
    }
    return true;
  }

  int64_t BytesOf(uint16_t mask) const {
    int64_t sum = 0;
    for (int32_t value = 0; value < problem_.value_count; ++value) {
      if (Has(mask, value)) sum += problem_.bytes[At(value)];
    }
    return sum;
  }

  int64_t LastEnd(const CopyState& state, int values) const {
    int64_t last = 0;
    for (int32_t value = 0; value < problem_.value_count; ++value) {
      if ((values >> value & 1) != 0) last = std::max<int64_t>(last, state.ends[At(value)]);
    }
    return last;
  }

  // Lets `elapsed` time pass, then adds the state that the step leads to.
  void Advance(CopyState* state, int64_t elapsed, int64_t added, OffloadStep step) {
    const auto subtract_elapsed = [&](int16_t* time) {
      *time = static_cast<int16_t>(std::max<int64_t>(0, *time - elapsed));
    };
    subtract_elapsed(&state->out_free);
    subtract_elapsed(&state->in_free);
    for (int32_t value = 0; value < problem_.value_count; ++value) {
      subtract_elapsed(&state->ends[At(value)]);
      if (state->ends[At(value)] == 0) {
        state->coming = static_cast<uint16_t>(state->coming & ~BitOf(value));
      }
    }
    Reach(*state, added_ + added, from_, step);
  }

  void Reach(const CopyState& state, int64_t added, int32_t from, OffloadStep step) {
    const auto [it, is_new] = best_.try_emplace(state, added, nodes_.size());
    if (!is_new && it->second.first <= added) return;
    it->second = {added, nodes_.size()};
    queue_.emplace(added, nodes_.size());
    nodes_.push_back({state, from, step});
  }

  std::vector<OffloadStep> StepsTo(size_t node) const {
    std::vector<OffloadStep> steps;
    for (auto at = static_cast<int32_t>(node); nodes_[At(at)].from >= 0; at = nodes_[At(at)].from) {
      steps.push_back(nodes_[At(at)].step);
    }
    std::reverse(steps.begin(), steps.end());
    return steps;
  }

  const RunProblem& problem_;
  const CopyTimes& times_;
  const std::span<const OpId> order_;
  const int64_t budget_;
  uint16_t results_ = 0;
  // The path length and node index of the state being expanded.
  int64_t added_ = 0;
  int32_t from_ = -1;
  std::vector<Node> nodes_;
  std::unordered_map<CopyState, std::pair<int64_t, size_t>, CopyStateHash> best_;
  std::priority_queue<std::pair<int64_t, size_t>, std::vector<std::pair<int64_t, size_t>>,
                      std::greater<>>
      queue_;
};

}  // namespace

OffloadOptimum ExhaustiveOffload(const RunProblem& problem, const CopyTimes& times,
                                 std::span<const OpId> order, int64_t budget, size_t max_states) {
  return OffloadSearch(problem, times, order, budget).Run(max_states);
}

}  // namespace ckplan
