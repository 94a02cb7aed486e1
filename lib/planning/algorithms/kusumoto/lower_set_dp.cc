#include "lib/planning/algorithms/kusumoto/lower_set_dp.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "lib/base/units.h"
#include "lib/planning/algorithms/kusumoto/fitting_segments.h"
#include "lib/planning/algorithms/kusumoto/overhead_bound.h"
#include "lib/planning/algorithms/kusumoto/set_workers.h"

namespace ckplan {

namespace {

// The states that the dynamic program of lower_set_dp.h reaches at one set.

// The state (t, m) of Alg. 1. Its key represents the overhead: see overhead_bound.h.
struct State {
  int64_t key = 0;
  Bytes cached = kNoBytes;
  int32_t from_set = -1;
  int32_t from_state = -1;

  auto order_at_key() const { return std::tuple(cached, from_set, from_state); }
  auto order() const { return std::tuple(key, cached, from_set, from_state); }
};

// Collects states and keeps the Pareto-optimal ones. With few keys, it has a column per key, as in
// the paper's table; otherwise it sorts.
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

  // Keys within the same multiple of `unit` count as equal; see "Refinement" in lower_set_dp.h.
  // With columns, all keys stay distinct.
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

  // Compares with the sorted states: of those whose key is not larger, the last has the least
  // memory.
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
  size_t sorted_ = 0;  // How many states, from the first, KeepBest has kept.
};

// Returns Eq. 1 for a sequence.
Cost OverheadOf(const LowerSetFamily& family, const std::vector<int32_t>& sets) {
  Cost overhead;
  int32_t below = 0;
  for (const int32_t set : sets) {
    overhead += Cost(Between(family, set, below).more_time);
    below = set;
  }
  return overhead;
}

// One call of Solve.
class OverheadSearch {
 public:
  // `passable` must not be empty.
  OverheadSearch(const LowerSetFamily& family, Bytes budget,
                 const FittingSegments::Passable& passable, OverheadGoal goal,
                 const StateLimits& limits, SearchHints* hints, SetWorkers* workers)
      : family_(family),
        sign_(goal == OverheadGoal::kMin ? 1 : -1),
        total_time_(family.whole().time.count()),
        limits_(limits),
        hints_(*hints),
        workers_(*workers),
        segments_(family, budget, workers),
        bound_(family, sign_, &segments_, workers),
        reached_(workers->count(), StateList(sign_ > 0 ? 0 : -total_time_, total_time_ + 1)),
        useful_(passable.sets),
        max_cached_(passable.max_cached) {}

  // `known`, if set, is a sequence within the budget.
  Result<LowerSetPath> Run(Effort effort, std::optional<LowerSetPath> known) {
    best_ = std::move(known);
    if (best_) best_key_ = sign_ * best_->overhead.count();
    CKPLAN_RETURN_IF_ERROR(FindBound());
    const int64_t first_bound = lower_bound_;
    const Result<Done> result = Refine(first_bound, effort);
    if (!result.ok() && !best_) return result.error();
    hints_.slack = best_key_ - first_bound;
    best_->overhead = Cost(sign_ * best_key_);
    best_->bound = Cost(sign_ * std::min(lower_bound_, best_key_));
    return *std::move(best_);
  }

 private:
  Result<Done> FindBound() {
    CKPLAN_RETURN_IF_ERROR(bound_.Find(useful_, hints_.price));
    hints_.price = bound_.best_price();
    lower_bound_ = bound_.MinEndKey(0, 0, Bytes(0));
    return Done{};
  }

  // Raises the guess until it finds a sequence, and refines until that sequence is proven best.
  // Errors after that end the search with this sequence.
  Result<Done> Refine(int64_t first_bound, Effort effort) {
    // No key is above this, so such a guess drops nothing.
    const int64_t worst = sign_ > 0 ? total_time_ : 0;
    int64_t slack = FirstSlack();
    while (lower_bound_ < best_key_) {
      guess_ = std::min({worst, first_bound + slack, best_key_ - 1});
      guess_ = std::max(guess_, std::min(lower_bound_, worst));
      CKPLAN_ASSIGN_OR_RETURN(const bool is_complete, FillTable());
      if (!is_complete) {
        if (is_merging_) return Done{};
        is_merging_ = true;
        unit_ = CoarseUnit();
      } else if (states_.back().empty()) {
        CKPLAN_CHECK(guess_ < worst, "a sequence exists for a feasible budget");
        lower_bound_ = guess_ + 1;
        slack = slack * 7 / 4 + 1;
      } else {
        TakeSequence();
        if (effort == Effort::kFirst) return Done{};
        unit_ = std::max<int64_t>(1, unit_ / 4);
      }
    }
    return Done{};
  }

  int64_t FirstSlack() const {
    return std::clamp(hints_.slack, 1 + total_time_ / 512, 1 + total_time_ / 64);
  }
  // With this unit, a list has at most as many states as a table of kColumns columns.
  int64_t CoarseUnit() const { return 2 + total_time_ / kColumns; }

  // Fills the table of Alg. 1, skipping states that cannot end with a key of at most guess_.
  // Returns false if the lists became too long.
  Result<bool> FillTable() {
    states_.assign(static_cast<size_t>(family_.size()), {});
    min_cached_.assign(states_.size(), kNoBytes);
    min_keys_.assign(states_.size(), 0);
    states_[0].push_back({0, Bytes(0), -1, -1});
    min_cached_[0] = Bytes(0);
    if (!is_merging_) step_count_ = 0;
    state_count_ = 0;
    CKPLAN_RETURN_IF_ERROR(workers_.RunUpwards(
        useful_.after_first(), [&](size_t worker, int32_t set) { FillList(worker, set); }));
    return !IsOverLimit();
  }

  // The coarsest pass has no limit while no sequence is known.
  bool IsOverLimit() const {
    if (total_time_ <= kMaxExactTime || (unit_ >= CoarseUnit() && !best_)) return false;
    return step_count_ > (is_merging_ ? limits_.max_steps : limits_.max_first_steps) ||
           state_count_ > limits_.max_states;
  }

  void FillList(size_t worker, int32_t set) {
    if (!bound_.has_way(set) || IsOverLimit()) return;
    StateList& reached = reached_[worker];
    reached.Clear();
    const int64_t max_key = guess_ - bound_.MinEndKey(set, 0, family_.boundary_memory(set));
    segments_.ForEach(
        worker, set, useful_,
        [&](int32_t below, Bytes max_below) {
          const auto from = static_cast<size_t>(below);
          return min_cached_[from] <= max_below &&
                 min_keys_[from] + bound_.MinStepKey(set, below) <= max_key;
        },
        [&](int32_t below, Bytes max_below) { Pull(set, below, max_below, &reached); });
    reached.KeepBest(unit_);
    TakeStates(set, reached.states());
  }

  // Extends every state of `below` by the step to `set`.
  void Pull(int32_t set, int32_t below, Bytes max_below, StateList* reached) {
    const std::vector<State>& from = states_[static_cast<size_t>(below)];
    if (from.empty()) return;
    const Transition step = Between(family_, set, below);
    const int64_t more_key = sign_ * step.more_time;
    const Bytes max_cached =
        std::min(max_below, max_cached_[static_cast<size_t>(set)] - step.more_cached);
    // With a larger key, even the state that caches the least cannot end within the guess.
    const int64_t max_key =
        guess_ - bound_.MinEndKey(set, more_key, from.back().cached + step.more_cached);
    // Along the list, keys rise and memory falls.
    const auto first = std::partition_point(
        from.begin(), from.end(), [&](const State& state) { return state.cached > max_cached; });
    auto it = first;
    for (; it != from.end() && it->key <= max_key; ++it) {
      reached->Add({it->key + more_key, it->cached + step.more_cached, below,
                    static_cast<int32_t>(it - from.begin())},
                   unit_);
    }
    workers_.meter().Add(it - first);
    step_count_.fetch_add(it - first, std::memory_order_relaxed);
  }

  // Stores a set's list without states that cannot end within the guess.
  void TakeStates(int32_t set, const std::vector<State>& reached) {
    std::vector<State> states;
    for (const State& state : reached) {
      if (bound_.MinEndKey(set, state.key, state.cached) <= guess_) states.push_back(state);
    }
    if (states.empty()) return;
    const auto i = static_cast<size_t>(set);
    min_keys_[i] = states.front().key;
    min_cached_[i] = states.back().cached;
    state_count_.fetch_add(static_cast<int64_t>(states.size()), std::memory_order_relaxed);
    states.shrink_to_fit();
    states_[i] = std::move(states);
  }

  // Takes the table's best sequence if its true overhead beats the best known one.
  void TakeSequence() {
    lower_bound_ = std::max(lower_bound_, states_.back().front().key);
    LowerSetPath path;
    int32_t state = 0;
    for (int32_t set = family_.size() - 1; set != 0;) {
      path.sets.push_back(set);
      const State& at = states_[static_cast<size_t>(set)][static_cast<size_t>(state)];
      set = at.from_set;
      state = at.from_state;
    }
    std::reverse(path.sets.begin(), path.sets.end());
    const int64_t key = sign_ * OverheadOf(family_, path.sets).count();
    if (key >= best_key_) return;
    best_key_ = key;
    best_ = std::move(path);
  }

  static constexpr int64_t kColumns = 1000;

  const LowerSetFamily& family_;
  const int64_t sign_;
  const int64_t total_time_;
  const StateLimits limits_;
  SearchHints& hints_;
  SetWorkers& workers_;
  FittingSegments segments_;
  OverheadBound bound_;
  std::vector<StateList> reached_;  // One list for each worker.
  const SetSelection& useful_;      // The sets that a sequence can pass.
  const std::vector<Bytes>& max_cached_;
  int64_t guess_ = 0;
  int64_t unit_ = 1;
  bool is_merging_ = false;  // Lists were too long for exact keys.
  int64_t lower_bound_ = 0;  // No sequence has a smaller key.
  int64_t best_key_ = OverheadBound::kNoWay;
  std::optional<LowerSetPath> best_;
  std::vector<std::vector<State>> states_;
  std::vector<Bytes> min_cached_;  // The least cached memory of each list; kNoBytes if it is empty.
  std::vector<int64_t> min_keys_;
  std::atomic<int64_t> step_count_ = 0;  // Steps of one exact pass, or of all passes that merge
                                         // states.
  std::atomic<int64_t> state_count_ = 0;
};

}  // namespace

Result<Bytes> LowerSetDp::MinBudget(std::optional<Bytes> known, const DpLimits& limits) {
  SetWorkers workers(family_, limits);
  CKPLAN_ASSIGN_OR_RETURN(least_, FindMinBudget(family_, known, &workers));
  return least_->budget;
}

Result<std::optional<LowerSetPath>> LowerSetDp::Solve(Bytes budget, OverheadGoal goal,
                                                      const DpLimits& limits, Effort effort) {
  SetWorkers workers(family_, limits);
  FittingSegments::Passable found;
  const bool is_known = least_ && least_->budget == budget && least_->passable;
  if (!is_known) {
    CKPLAN_ASSIGN_OR_RETURN(found, FittingSegments(family_, budget, &workers).FindPassable());
  }
  const FittingSegments::Passable& passable = is_known ? *least_->passable : found;
  if (passable.sets.empty()) return std::optional<LowerSetPath>();
  const auto search = [&](const LowerSetFamily& family, SearchHints* hints) {
    return OverheadSearch(family, budget, passable, goal, state_limits_, hints, &workers);
  };
  std::optional<LowerSetPath> first;
  if (rounded_) {
    CKPLAN_ASSIGN_OR_RETURN(first, search(*rounded_, &rounded_hints_).Run(effort, std::nullopt));
    first->overhead = OverheadOf(family_, first->sets);
    first->bound = Cost(goal == OverheadGoal::kMin ? 0 : family_.whole().time.count());
    if (effort == Effort::kFirst) return first;
  }
  Result<LowerSetPath> best = search(family_, &hints_).Run(effort, first);
  if (best.ok()) return std::optional(*std::move(best));
  if (!first) return std::move(best).error();
  return first;  // A limit was reached before there was a better bound.
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
