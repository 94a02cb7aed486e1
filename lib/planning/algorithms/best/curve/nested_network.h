// The cheapest choice of what to keep at several moments of an order, as one minimum cut.
// docs/bounds.md (Theorem 12) proves that each cut bounds every plan of the order.
//
//   moment i                        source ──inf──▶ N_u ──price·bytes──▶ R_m ──cost──▶ sink
//                                                                         ▲
//   moment j, after i               source ──inf──▶ N_u ──price·bytes──▶ R_m
//
// N_u of a moment: u, computed before it, is needed at it or later. R_m: m, which has run before
// it, reruns after it. A needed value is either kept across the moment, or its producer reruns, and
// then the producer's reads are needed, too. What reruns after the later moment also reruns after
// the earlier one, which pays for it once.
//
// Each moment has a price per byte kept across it. For any prices, the cost of the cheapest choice,
// less the price of the whole budget, is a line in the budget that no plan lies below.
//
// With other micro-batches in flight, what a plan saves counts at every moment. The network then
// has one more level, after the loss, whose bytes have all moments' prices, once for each of them
// (Theorem 13).
//
// Cost  one minimum cut per list of prices, on a network of about the operations before each
//       moment, times the number of moments.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "lib/problem/graph/max_flow.h"
#include "lib/problem/runs/run_problem.h"

namespace ckplan {

// A proven bound on the added time for all budgets at once: a line that falls as the budget grows.
//
//   added time
//        |\                      Each cut of a NestedNetwork gives one line. No plan lies below any
//        | \  _                  of them, so none lies below their upper envelope, which is convex.
//        |  \   - _
//        |   \______-_-_____
//        +------------------ budget

// The added cost of every plan within a budget of B bytes is at least (at_zero - slope * B) /
// 2^shift. All of these are integers, so nothing is rounded.
struct BoundLine {
  __int128 at_zero = 0;
  __int128 slope = 0;  // At least 0.
  int shift = 0;

  // Returns the smallest integer cost on or above the line, at least 0.
  int64_t CostWithin(int64_t budget) const {
    const __int128 above = at_zero - slope * budget;
    if (above <= 0) return 0;
    const __int128 unit = __int128{1} << shift;
    constexpr __int128 kMost = std::numeric_limits<int64_t>::max() / 4;
    return static_cast<int64_t>(std::min((above + unit - 1) / unit, kMost));
  }

  // Returns the smallest budget for which the line allows a plan that adds at most `cost`.
  int64_t MinBudgetFor(int64_t cost) const {
    const __int128 above = at_zero - (static_cast<__int128>(cost) << shift);
    if (above <= 0 || slope == 0) return 0;
    constexpr __int128 kMost = std::numeric_limits<int64_t>::max() / 4;
    return static_cast<int64_t>(std::min((above + slope - 1) / slope, kMost));
  }
};

// A choice of what to keep at each moment.
struct NestedChoice {
  int64_t cost = 0;  // What the reruns cost.
  // Kept at each moment, with those of other micro-batches, without its fixed bytes.
  std::vector<int64_t> bytes;
};

class NestedNetwork {
 public:
  // Keeps a reference to `problem`. `moments` are positions in the order, ascending.
  NestedNetwork(const RunProblem& problem, std::span<const OpId> order,
                std::span<const int32_t> moments);

  // Prices per byte up to 2^kMaxPriceBits / 2^price_shift() cannot overflow.
  static constexpr int kMaxPriceBits = 60;
  // Prices are integers in units of 2^-price_shift() of a cost per byte.
  int price_shift() const { return price_shift_; }

  size_t moment_count() const { return moments_.size(); }
  std::span<const int32_t> moments() const { return moments_; }
  int32_t node_count() const { return node_count_; }
  int64_t work() const { return flow_.work(); }
  // The memory of every plan at the moment, including its operation's own needs.
  int64_t fixed_bytes(size_t moment) const {
    return levels_[LevelOf(moment)].fixed_bytes + fixed_bytes_of_others_;
  }

  // The moments, and the level after the loss, in the order of the step.
  size_t level_count() const { return levels_.size(); }
  size_t LevelOf(size_t moment) const { return moment < after_loss_ ? moment : moment + 1; }
  // Without other micro-batches, no level is after the loss.
  bool IsAfterLoss(size_t level) const { return level == after_loss_; }
  // The first position in the order that comes after the level, or at its moment.
  int32_t position(size_t level) const { return levels_[level].position; }

  // kBreak makes reruns early in the order slightly cheaper, by at most a thousandth of their cost.
  // Otherwise, equal layers are either all kept or all recomputed at one price. Costs only fall, so
  // the line is still a bound.
  enum class Ties : uint8_t { kKeep, kBreak };

  // Finds the cheapest choice at these prices, and returns the line that it proves.
  BoundLine Cut(std::span<const int64_t> prices, Ties ties);
  // Finds the minimum memory of any plan at the moment, including the fixed bytes.
  int64_t MinBytes(size_t moment);

  // The choice of the last cut.
  NestedChoice Choice() const;
  // Keeps everything needed, without reruns.
  NestedChoice KeepAll() const;
  // The bytes that other micro-batches hold in the last cut's choice.
  int64_t BytesOfOthers() const;
  // The values that the last cut keeps across a level, on top of those that every plan keeps.
  std::vector<std::vector<int32_t>> ListKeptByLevel() const;
  // By value: every plan keeps it across the level, or it has no bytes.
  const std::vector<bool>& is_certain(size_t level) const { return levels_[level].is_certain; }
  // By value: the last cut keeps it across the level, or it is certain.
  std::vector<bool> FindKeptAt(size_t level) const;
  // The level whose bytes count most: that after the loss, or of the moment.
  size_t DearestLevel(size_t moment) const {
    return after_loss_ == kNoLevel ? moment : after_loss_;
  }

 private:
  struct ValueArc {
    int32_t id;
    int32_t tail;
    int32_t head;
    int32_t value;
    int32_t level;
    bool is_needed;  // An operation at the level or later reads it, or it is a result.
  };
  struct OpArc {
    int32_t id;
    int32_t tail;
    int32_t op;
    int32_t discount;  // In parts of 2^kDiscountBits.
  };
  struct Level {
    int32_t position = 0;
    int64_t fixed_bytes = 0;
    std::vector<bool> is_certain;
    int64_t priced_bytes = 0;  // The sum over its arcs of values.
  };
  static constexpr size_t kNoLevel = std::numeric_limits<size_t>::max();
  class Builder;

  NestedNetwork(const RunProblem& problem, std::span<const int32_t> moments, Builder builder);

  int64_t Solve();
  void AddBytes(const ValueArc& arc, NestedChoice* choice) const;
  bool IsCut(const ValueArc& arc) const { return side_[At(arc.tail)] && !side_[At(arc.head)]; }
  int64_t BytesOf(const ValueArc& arc) const { return problem_.bytes[At(arc.value)]; }
  void SetPriceShift();

  const RunProblem& problem_;
  const std::vector<int32_t> moments_;
  std::vector<Level> levels_;
  size_t after_loss_ = kNoLevel;
  int64_t fixed_bytes_of_others_ = 0;
  std::vector<ValueArc> value_arcs_;
  std::vector<OpArc> op_arcs_;
  const int32_t node_count_;
  MaxFlow flow_;
  int64_t all_costs_ = 0;
  int price_shift_ = 0;
  std::vector<bool> side_;  // The nodes on the source's side of the last cut.
};

}  // namespace ckplan
