#include "lib/algorithms/kusumoto/lower_set_dp.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <utility>

#include "lib/algorithms/kusumoto/fitting_segments.h"

namespace ckplan {
namespace {

std::vector<int32_t> AllSets(const LowerSetFamily& family) {
  std::vector<int32_t> sets(static_cast<size_t>(family.size()));
  std::iota(sets.begin(), sets.end(), 0);
  return sets;
}

// Finds the least feasible budget: halves the range in which it lies until that is narrow, and then
// decides in one pass over the values that occur in what is left.
class MinBudgetSearch {
 public:
  // `known` must be feasible.
  MinBudgetSearch(LowerSetFamily* family, Bytes known, WorkMeter* meter)
      : family_(*family), meter_(*meter), feasible_(known), useful_(AllSets(*family)) {}

  Result<Bytes> Run() {
    CKPLAN_RETURN_IF_ERROR(Try(feasible_));
    const Bytes narrow(feasible_.count() / 1024);
    while (feasible_ - infeasible_ > narrow + Bytes(1)) {
      CKPLAN_RETURN_IF_ERROR(Try(Bytes((infeasible_.count() + feasible_.count()) / 2)));
    }
    return SettleRest();
  }

 private:
  // A sequence that leads to a set: what is cached, and the highest Eq. 2 value so far.
  struct Way {
    Bytes cached;
    Bytes peak;
    auto operator<=>(const Way&) const = default;
  };
  static constexpr size_t kMaxUnsorted = 1024;

  // A feasible guess is lowered at once to the peak of the sequence found, and sets that no
  // sequence within it can pass are left out from then on.
  Result<Done> Try(Bytes guess) {
    FittingSegments segments(&family_, guess, &meter_);
    CKPLAN_ASSIGN_OR_RETURN(const auto arrivals, segments.FindMinCached(useful_));
    if (arrivals.back().cached == kNoBytes) {
      infeasible_ = guess;
      return Done{};
    }
    feasible_ = arrivals.back().peak;
    CKPLAN_ASSIGN_OR_RETURN(const auto max_cached, segments.FindMaxCached(useful_));
    std::erase_if(useful_, [&](int32_t set) {
      const auto i = static_cast<size_t>(set);
      return arrivals[i].cached > max_cached[i];
    });
    return Done{};
  }

  // Keeps for each set the ways that no other way beats in both numbers. Peaks that are known to be
  // infeasible count as equal, so that few ways differ.
  Result<Bytes> SettleRest() {
    FittingSegments segments(&family_, feasible_, &meter_);
    std::vector<std::vector<Way>> ways(static_cast<size_t>(family_.size()));
    ways[0].push_back({Bytes(0), infeasible_ + Bytes(1)});
    std::vector<Way> reached;
    for (const int32_t set : std::span(useful_).subspan(1)) {
      CKPLAN_RETURN_IF_ERROR(meter_.Check());
      reached.clear();
      segments.ForEach(set, useful_, [&](int32_t below, Bytes max_cached) {
        const std::vector<Way>& from = ways[static_cast<size_t>(below)];
        if (from.empty() || from.front().cached > max_cached) return;
        const Bytes more_cached = Between(family_, set, below).more_cached;
        meter_.Add(static_cast<int64_t>(from.size()));
        for (const Way& way : from) {
          if (way.cached > max_cached) break;
          const Bytes needed = way.cached + feasible_ - max_cached;
          reached.push_back({way.cached + more_cached, std::max(way.peak, needed)});
        }
        if (reached.size() > kMaxUnsorted) KeepBest(&reached);
      });
      KeepBest(&reached);
      ways[static_cast<size_t>(set)] = reached;
    }
    CKPLAN_CHECK(!ways.back().empty(), "the search starts from a feasible budget");
    return ways.back().back().peak;
  }

  // Sorts by cached memory and drops ways whose peak is not below that of a way before them.
  static void KeepBest(std::vector<Way>* ways) {
    std::sort(ways->begin(), ways->end());
    size_t kept = 0;
    for (const Way& way : *ways) {
      if (kept == 0 || way.peak < (*ways)[kept - 1].peak) (*ways)[kept++] = way;
    }
    ways->resize(kept);
  }

  LowerSetFamily& family_;
  WorkMeter& meter_;
  Bytes feasible_;
  Bytes infeasible_{-1};         // This and all below it.
  std::vector<int32_t> useful_;  // The sets through which some sequence may yet lead, ascending.
};

// One call of Solve. Overheads are compared as keys: the overhead itself where the least is sought,
// its negative where the greatest is, so that the smaller key is the better one in both.
class OverheadSearch {
 public:
  OverheadSearch(LowerSetFamily* family, Bytes budget, OverheadGoal goal, SearchHints* hints,
                 WorkMeter* meter)
      : family_(*family),
        sign_(goal == OverheadGoal::kMin ? 1 : -1),
        total_time_(family->facts(family->size() - 1).time.count()),
        hints_(*hints),
        meter_(*meter),
        segments_(family, budget, meter) {
    while ((family->facts(family->size() - 1).memory.count() >> memory_shift_) >= kMemoryUnits) {
      ++memory_shift_;
    }
  }

  Result<std::optional<LowerSetPath>> Run() {
    useful_ = AllSets(family_);
    CKPLAN_ASSIGN_OR_RETURN(max_cached_, segments_.FindMaxCached(useful_));
    if (max_cached_[0] < Bytes(0)) return std::optional<LowerSetPath>();
    std::erase_if(useful_, [&](int32_t set) {
      return max_cached_[static_cast<size_t>(set)] < family_.facts(set).boundary_memory;
    });
    CKPLAN_RETURN_IF_ERROR(FindEndCached());
    CKPLAN_RETURN_IF_ERROR(ChoosePrices());
    // No key is above this, so a guess this high drops nothing.
    const int64_t worst = sign_ > 0 ? total_time_ : 0;
    row_.assign(static_cast<size_t>(total_time_) + 1, {});
    const int64_t bound = MinEndKey(0, 0, Bytes(0));
    for (int64_t slack = FirstSlack();; slack = slack * 7 / 4 + 1) {
      guess_ = std::min(worst, bound + slack);
      CKPLAN_RETURN_IF_ERROR(FillTable());
      if (!states_.back().empty()) {
        LowerSetPath path = TracePath();
        hints_.slack = sign_ * path.overhead.count() - bound;
        return std::optional(std::move(path));
      }
      CKPLAN_CHECK(guess_ < worst, "a feasible budget has a sequence");
    }
  }

 private:
  struct State {
    int32_t overhead = 0;
    int32_t from_set = -1;
    int32_t from_state = -1;
    Bytes cached = kNoBytes;
  };

  // Priced costs are key * kKeyUnit + price * memory units * T(V), all far below 2^62: at most
  // 2^24 memory units, 2^20 units of time, prices up to 2^16.
  static constexpr int64_t kMemoryUnits = int64_t{1} << 24;
  static constexpr int64_t kKeyUnit = kMemoryUnits << 10;
  static constexpr int64_t kMaxPrice = int64_t{1} << 16;
  static constexpr size_t kPriceCount = 6;
  using Prices = std::array<int64_t, kPriceCount>;
  using Priced = std::array<int64_t, kPriceCount>;  // One cost for each price.

  int64_t MemoryUnits(Bytes bytes) const { return bytes.count() >> memory_shift_; }

  // costs + what a step of this key and memory costs, at every price.
  Priced Add(const Priced& costs, int64_t key, Bytes cached) const {
    const int64_t memory = MemoryUnits(cached) * total_time_;
    Priced sums;
    for (size_t p = 0; p < kPriceCount; ++p) {
      sums[p] = costs[p] + key * kKeyUnit + prices_[p] * memory;
    }
    return sums;
  }

  // Finds the maximum that can be cached when the last segment begins.
  Result<Done> FindEndCached() {
    end_cached_ = Bytes(0);
    segments_.ForEach(family_.size() - 1, useful_, [&](int32_t, Bytes max_cached) {
      end_cached_ = std::max(end_cached_, max_cached);
    });
    return meter_.Check();
  }

  int64_t FirstSlack() const {
    return std::clamp(hints_.slack, 1 + total_time_ / 256, 1 + total_time_ / 64);
  }

  // The bound is concave in the price, so the best price lies between the neighbours of the best of
  // those tried. A call begins near the price that was best in the call before it.
  Result<Done> ChoosePrices() {
    if (hints_.price > 0) {
      prices_ = PricesBetween(std::max<int64_t>(1, hints_.price / 2), hints_.price * 8 / 5 + 1);
    } else {
      prices_ = PricesBetween(64, kMaxPrice / 4);
      CKPLAN_RETURN_IF_ERROR(FindPricedToGo());
      const size_t best = BestPrice();
      prices_ = PricesBetween(prices_[best == 0 ? 0 : best - 1],
                              prices_[std::min(best + 1, kPriceCount - 1)]);
    }
    prices_[0] = 0;  // Best where memory does not bind.
    CKPLAN_RETURN_IF_ERROR(FindPricedToGo());
    hints_.price = prices_[BestPrice()];
    return Done{};
  }

  // Prices in equal ratios. They only give bounds, so it does not matter how they are rounded.
  static Prices PricesBetween(int64_t low, int64_t high) {
    Prices prices;
    const double ratio = std::pow(static_cast<double>(high) / static_cast<double>(low),
                                  1.0 / static_cast<double>(kPriceCount - 1));
    double price = static_cast<double>(low);
    for (size_t p = 0; p < kPriceCount; ++p, price *= ratio) {
      prices[p] = std::min(kMaxPrice, static_cast<int64_t>(price) + 1);
    }
    return prices;
  }

  size_t BestPrice() const {
    const Priced& to_go = to_go_[0];
    const int64_t allowance = (MemoryUnits(end_cached_) + 1) * total_time_;
    size_t best = 0;
    for (size_t p = 1; p < kPriceCount; ++p) {
      if (to_go[p] - prices_[p] * allowance > to_go[best] - prices_[best] * allowance) best = p;
    }
    return best;
  }

  // A Lagrangian bound. A state at L with m cached may cache end_cached_ - m more; charging a price
  // for each byte and paying back that allowance bounds the remaining key from below, at any price.
  // to_go_[L] becomes the lowest charge over all sequences from L to V, at every price.
  Result<Done> FindPricedToGo() {
    Priced no_way;
    no_way.fill(kNoWay);
    to_go_.assign(static_cast<size_t>(family_.size()), no_way);
    to_go_.back().fill(0);
    for (size_t i = useful_.size(); i-- > 1;) {
      const int32_t set = useful_[i];
      CKPLAN_RETURN_IF_ERROR(meter_.Check());
      const Priced from = to_go_[static_cast<size_t>(set)];
      if (from[0] == kNoWay) continue;
      segments_.ForEach(set, useful_, [&](int32_t below, Bytes) {
        Priced& best = to_go_[static_cast<size_t>(below)];
        if (!IsAnyLess(AddMin(from, set, below), best)) return;
        const Transition step = Between(family_, set, below);
        const Priced sums = Add(from, sign_ * step.more_time, step.more_cached);
        for (size_t p = 0; p < kPriceCount; ++p) best[p] = std::min(best[p], sums[p]);
      });
    }
    return Done{};
  }

  static bool IsAnyLess(const Priced& a, const Priced& b) {
    bool is_less = false;
    for (size_t p = 0; p < kPriceCount; ++p) is_less |= a[p] < b[p];
    return is_less;
  }

  // A lower bound on Add for the step from `below` to `set`. It ignores what the two boundaries
  // share, so it needs no look at their members.
  Priced AddMin(const Priced& costs, int32_t set, int32_t below) const {
    const LowerSetFamily::Facts& to = family_.facts(set);
    const LowerSetFamily::Facts& from = family_.facts(below);
    const int64_t min_time = MinTime(set, below);
    const int64_t max_time = min_time + std::min(to.boundary_time, from.boundary_time).count();
    return Add(costs, sign_ > 0 ? min_time : -max_time,
               std::max(Bytes(0), to.boundary_memory - from.boundary_memory));
  }

  int64_t MinTime(int32_t set, int32_t below) const {
    const LowerSetFamily::Facts& to = family_.facts(set);
    const Cost min_time = to.time - family_.facts(below).time - to.boundary_time;
    return std::max<int64_t>(0, min_time.count());
  }

  // A lower bound on the key with which a state can end: the best of the bounds at all prices.
  int64_t MinEndKey(int32_t set, int64_t key, Bytes cached) const {
    const Priced& to_go = to_go_[static_cast<size_t>(set)];
    if (to_go[0] == kNoWay) return kNoWay;
    const int64_t allowance =
        (MemoryUnits(std::max(Bytes(0), end_cached_ - cached)) + 1) * total_time_;
    int64_t bound = to_go[0] - prices_[0] * allowance;
    for (size_t p = 1; p < kPriceCount; ++p) {
      bound = std::max(bound, to_go[p] - prices_[p] * allowance);
    }
    // Keys are whole: round down, also below zero.
    return key + (bound >= 0 ? bound / kKeyUnit : -((-bound + kKeyUnit - 1) / kKeyUnit));
  }

  // Fills the table of Alg. 1, without states that cannot end with a key of at most guess_.
  Result<Done> FillTable() {
    states_.assign(static_cast<size_t>(family_.size()), {});
    states_[0].push_back({0, -1, -1, Bytes(0)});
    std::vector<int32_t> reached = {0};
    for (const int32_t set : std::span(useful_).subspan(1)) {
      CKPLAN_RETURN_IF_ERROR(meter_.Check());
      if (to_go_[static_cast<size_t>(set)][0] == kNoWay) continue;
      lowest_ = row_.size();
      highest_ = 0;
      max_overhead_ = MaxOverhead(set, 0, family_.facts(set).boundary_memory);
      segments_.ForEach(set, reached,
                        [&](int32_t below, Bytes max_below) { Pull(set, below, max_below); });
      TakeRow(set);
      if (!states_[static_cast<size_t>(set)].empty()) reached.push_back(set);
    }
    return Done{};
  }

  // No state that caches at least `cached` at `set` can end within the guess with more overhead
  // than this. `more_time` is what the state has yet to spend before it is at `set`.
  int64_t MaxOverhead(int32_t set, int64_t more_time, Bytes cached) const {
    return sign_ > 0 ? guess_ - MinEndKey(set, more_time, cached) : total_time_;
  }

  // Lets every state of `below` take the step to `set`.
  void Pull(int32_t set, int32_t below, Bytes max_below) {
    const std::vector<State>& from = states_[static_cast<size_t>(below)];
    // Along the list keys rise and memory falls: if its last state cannot pass, none can.
    if (from.empty() || from.back().cached > max_below) return;
    if (sign_ > 0 && from.front().overhead + MinTime(set, below) > max_overhead_) return;
    const Transition step = Between(family_, set, below);
    const Bytes max_cached =
        std::min(max_below, max_cached_[static_cast<size_t>(set)] - step.more_cached);
    const int64_t max_overhead =
        MaxOverhead(set, step.more_time, from.back().cached + step.more_cached);
    meter_.Add(static_cast<int64_t>(from.size()));
    const auto first = std::partition_point(
        from.begin(), from.end(), [&](const State& state) { return state.cached > max_cached; });
    for (auto it = first; it != from.end(); ++it) {
      if (it->overhead > max_overhead) break;  // It only grows.
      const int64_t overhead = it->overhead + step.more_time;
      State& best = row_[static_cast<size_t>(overhead)];
      const Bytes cached = it->cached + step.more_cached;
      if (cached >= best.cached) continue;
      best = {static_cast<int32_t>(overhead), below, static_cast<int32_t>(it - from.begin()),
              cached};
      lowest_ = std::min(lowest_, static_cast<size_t>(overhead));
      highest_ = std::max(highest_, static_cast<size_t>(overhead));
    }
  }

  // Moves the row into a set's list, best key first, without dominated and hopeless states.
  void TakeRow(int32_t set) {
    if (lowest_ > highest_) return;
    std::vector<State>& states = states_[static_cast<size_t>(set)];
    Bytes min_cached = kNoBytes;
    const size_t count = highest_ - lowest_ + 1;
    for (size_t i = 0; i < count; ++i) {
      State& state = row_[sign_ > 0 ? lowest_ + i : highest_ - i];
      if (state.cached < min_cached) {
        min_cached = state.cached;
        if (MinEndKey(set, sign_ * state.overhead, state.cached) <= guess_) {
          states.push_back(state);
        }
      }
      state.cached = kNoBytes;
    }
    states.shrink_to_fit();
  }

  LowerSetPath TracePath() const {
    LowerSetPath path;
    path.overhead = Cost(states_.back().front().overhead);
    int32_t state = 0;
    for (int32_t set = family_.size() - 1; set != 0;) {
      path.sets.push_back(set);
      const State& at = states_[static_cast<size_t>(set)][static_cast<size_t>(state)];
      set = at.from_set;
      state = at.from_state;
    }
    std::reverse(path.sets.begin(), path.sets.end());
    return path;
  }

  static constexpr int64_t kNoWay = std::numeric_limits<int64_t>::max() / 2;

  LowerSetFamily& family_;
  const int64_t sign_;
  const int64_t total_time_;
  SearchHints& hints_;
  WorkMeter& meter_;
  FittingSegments segments_;
  Prices prices_{};
  int memory_shift_ = 0;
  std::vector<int32_t> useful_;  // The sets from which V can be reached, ascending.
  std::vector<Bytes> max_cached_;
  Bytes end_cached_;
  std::vector<Priced> to_go_;
  int64_t guess_ = 0;
  std::vector<std::vector<State>> states_;
  std::vector<State> row_;    // States of the present set, by overhead in [lowest_, highest_].
  int64_t max_overhead_ = 0;  // For any state of the present set.
  size_t lowest_ = 0;
  size_t highest_ = 0;
};

}  // namespace

Result<Bytes> LowerSetDp::MinBudget(std::optional<Bytes> known, const DpLimits& limits) {
  WorkMeter meter(family_.size(), limits);
  const Bytes whole = 2 * family_.facts(family_.size() - 1).memory;  // {V} is always feasible.
  return MinBudgetSearch(&family_, std::min(known.value_or(whole), whole), &meter).Run();
}

Result<std::optional<LowerSetPath>> LowerSetDp::Solve(Bytes budget, OverheadGoal goal,
                                                      const DpLimits& limits) {
  CKPLAN_CHECK(family_.facts(family_.size() - 1).time.count() < kMaxDpColumns,
               "the caller rounds times to at most that many units");
  WorkMeter meter(family_.size(), limits);
  return OverheadSearch(&family_, budget, goal, &hints_, &meter).Run();
}

IdVector<NodeId, int32_t> SegmentsOfPath(const LowerSetFamily& family, const VertexGraph& graph,
                                         const std::vector<int32_t>& sets) {
  IdVector<NodeId, int32_t> segment_of(graph.size());
  for (size_t i = sets.size(); i-- > 0;) {
    family.ForEachMember(sets[i], [&](NodeId v) { segment_of[v] = static_cast<int32_t>(i); });
  }
  return segment_of;
}

}  // namespace ckplan
