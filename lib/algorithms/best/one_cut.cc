#include "lib/algorithms/best/one_cut.h"

#include <algorithm>
#include <utility>

#include "lib/base/check.h"
#include "lib/base/stop.h"
#include "lib/graph/max_flow.h"
#include "lib/runs/lazy_runs.h"

namespace ckplan {
namespace {

constexpr int32_t kNoMaker = -1;
constexpr int kMaxMultipliers = 64;

// The state of values and operations at the moment.
class Moment {
 public:
  Moment(const RunProblem& problem, std::span<const OpId> order, size_t moment)
      : problem_(problem),
        is_before_(static_cast<size_t>(problem.op_count)),
        is_needed_(static_cast<size_t>(problem.value_count)) {
    for (size_t i = 0; i < moment; ++i) is_before_[IndexOf(order[i])] = true;
    for (int32_t value = 0; value < problem.value_count; ++value) {
      if (IsMadeBefore(value)) {
        is_needed_[static_cast<size_t>(value)] = problem.is_result[static_cast<size_t>(value)];
      }
    }
    for (size_t i = moment; i < order.size(); ++i) {
      for (const int32_t read : problem.reads[order[i].index()]) {
        if (IsMadeBefore(read)) is_needed_[static_cast<size_t>(read)] = true;
      }
    }
  }

  bool IsMadeBefore(int32_t value) const {
    const int32_t maker = problem_.maker[static_cast<size_t>(value)];
    return maker != kNoMaker && is_before_[static_cast<size_t>(maker)];
  }
  bool IsNeeded(int32_t value) const { return is_needed_[static_cast<size_t>(value)]; }
  bool MayBeRemade(int32_t value) const {
    return problem_.may_repeat[static_cast<size_t>(problem_.maker[static_cast<size_t>(value)])];
  }

 private:
  static size_t IndexOf(OpId op) { return static_cast<size_t>(op.index()); }

  const RunProblem& problem_;
  std::vector<bool> is_before_;  // Operations that have run.
  std::vector<bool> is_needed_;  // Values that are made before the moment and needed at it or
                                 // later.
};

// A point of the trade-off: reruns of this cost, with `bytes` kept across the moment.
struct Choice {
  int64_t cost = 0;
  int64_t bytes = 0;
  std::vector<bool> kept;  // By value.
};

// λ in cost per byte. Its product with all bytes together, up to 2^108, fits.
struct Multiplier {
  int64_t numerator = 0;
  int64_t denominator = 1;

  __int128 Of(int64_t bytes) const { return static_cast<__int128>(numerator) * bytes; }
};

// Returns amount · 2^shift, rounded down.
__int128 Shifted(__int128 amount, int shift) {
  return shift >= 0 ? amount << shift : amount >> -shift;
}

// The network of the cuts. It holds the values that are needed and not certainly kept, and the
// values needed to recompute them. Values without bytes are kept at no cost and left out.
//
// Capacities are costs times 2^shift, rounded down: for each multiplier the largest shift at which
// their sum stays below 2^60. Since capacities never exceed the true ones, the minimum cut never
// exceeds the true one, so its bounds hold.
//
// Nothing overflows 128 bits: while λ·bytes·2^shift is below 2^60, its numerator is below 2^60
// times the denominator, which is a difference of bytes and at most 2^56.
class MomentNetwork {
 public:
  MomentNetwork(const RunProblem& problem, std::span<const OpId> order, size_t moment)
      : problem_(problem),
        moment_(problem, order, moment),
        is_certain_(static_cast<size_t>(problem.value_count)),
        network_(problem.value_count + problem.op_count + 1),
        sink_(problem.value_count + problem.op_count),
        is_in_network_(static_cast<size_t>(sink_)) {
    FindCertain(order[moment].index());
    network_.SetTerminal(sink_, MaxFlow::Terminal::kSink);
    for (int32_t value = 0; value < problem.value_count; ++value) {
      if (!moment_.IsNeeded(value) || IsFree(value)) continue;
      network_.SetTerminal(value, MaxFlow::Terminal::kSource);
      Reach(value);
    }
    for (size_t next = 0; next < values_.size(); ++next) AddValue(values_[next]);
    for (const ValueArc& arc : value_arcs_) all_bytes_ += arc.bytes;
    for (const OpArc& arc : op_arcs_) all_costs_ += arc.cost;
  }

  int64_t certain_bytes() const { return certain_bytes_; }

  // Keeps all needed values.
  Choice KeepAll() const {
    Choice choice = {0, 0, is_certain_};
    for (const int32_t value : values_) {
      if (!moment_.IsNeeded(value)) continue;
      choice.kept[static_cast<size_t>(value)] = true;
      choice.bytes += problem_.bytes[static_cast<size_t>(value)];
    }
    return choice;
  }

  // Keeps the fewest bytes, whatever the reruns cost.
  Choice KeepLeast() {
    for (const ValueArc& arc : value_arcs_) network_.SetCapacity(arc.id, arc.bytes);
    for (const OpArc& arc : op_arcs_) network_.SetCapacity(arc.id, 0);
    network_.Solve();
    return ChoiceOfCut();
  }

  // Returns a choice of about the least cost + λ·bytes, and the proven bound for this room.
  std::pair<Choice, int64_t> Cut(const Multiplier& multiplier, int64_t room) {
    const int shift = ShiftFor(multiplier);
    for (const ValueArc& arc : value_arcs_) {
      const __int128 price =
          shift >= 0 ? Shifted(multiplier.Of(arc.bytes), shift) / multiplier.denominator
                     : Shifted(multiplier.Of(arc.bytes) / multiplier.denominator, shift);
      network_.SetCapacity(arc.id, static_cast<int64_t>(price));
    }
    for (const OpArc& arc : op_arcs_) {
      network_.SetCapacity(arc.id, static_cast<int64_t>(Shifted(arc.cost, shift)));
    }
    const int64_t least_cut = network_.Solve();
    return {ChoiceOfCut(), CostBound(least_cut, multiplier, room, shift)};
  }

 private:
  struct ValueArc {
    int32_t id;
    int32_t value;
    int32_t head;  // The maker's node, or the sink.
    int64_t bytes;
  };
  struct OpArc {
    int32_t id;
    int32_t op;
    int64_t cost;
  };

  int32_t NodeOfOp(int32_t op) const { return problem_.value_count + op; }

  bool IsFree(int32_t value) const {
    const auto at = static_cast<size_t>(value);
    return is_certain_[at] || problem_.bytes[at] == 0;
  }

  void FindCertain(int32_t op) {
    for (const int32_t read : problem_.reads[op]) is_certain_[static_cast<size_t>(read)] = true;
    for (int32_t value = 0; value < problem_.value_count; ++value) {
      const auto at = static_cast<size_t>(value);
      if (moment_.IsNeeded(value) && (problem_.bytes[at] == 0 || !moment_.MayBeRemade(value))) {
        is_certain_[at] = true;
      }
      if (is_certain_[at]) certain_bytes_ += problem_.bytes[at];
    }
  }

  void Reach(int32_t value) {
    if (is_in_network_[static_cast<size_t>(value)]) return;
    is_in_network_[static_cast<size_t>(value)] = true;
    values_.push_back(value);
  }

  void AddValue(int32_t value) {
    const auto at = static_cast<size_t>(value);
    const int32_t maker = problem_.maker[at];
    const int32_t head = moment_.MayBeRemade(value) ? NodeOfOp(maker) : sink_;
    const int64_t bytes = problem_.bytes[at];
    value_arcs_.push_back({network_.AddArc(value, head, bytes), value, head, bytes});
    if (head == sink_ || is_in_network_[static_cast<size_t>(head)]) return;
    is_in_network_[static_cast<size_t>(head)] = true;
    const int64_t cost = problem_.cost[static_cast<size_t>(maker)];
    op_arcs_.push_back({network_.AddArc(head, sink_, cost), maker, cost});
    for (const int32_t read : problem_.reads[maker]) {
      if (IsFree(read)) continue;
      network_.AddArc(head, read, MaxFlow::kInfinite);
      Reach(read);
    }
  }

  int ShiftFor(const Multiplier& multiplier) const {
    const __int128 all = all_costs_ + multiplier.Of(all_bytes_) / multiplier.denominator + 1;
    constexpr __int128 kLimit = __int128{1} << 60;
    int shift = 0;
    while (Shifted(all, shift + 1) <= kLimit) ++shift;
    while (Shifted(all, shift) > kLimit) --shift;
    return shift;
  }

  // Returns the least whole cost that is at least least_cut / 2^shift - λ·room.
  static int64_t CostBound(int64_t least_cut, const Multiplier& multiplier, int64_t room,
                           int shift) {
    const __int128 cut = static_cast<__int128>(least_cut) * multiplier.denominator;
    const int up = std::max(shift, 0);
    const __int128 bound = (cut << (up - shift)) - (multiplier.Of(room) << up);
    const __int128 unit = static_cast<__int128>(multiplier.denominator) << up;
    return bound <= 0 ? 0 : static_cast<int64_t>((bound + unit - 1) / unit);
  }

  Choice ChoiceOfCut() {
    const std::vector<bool> side = network_.LeastSourceSide();
    Choice choice = {0, 0, is_certain_};
    for (const ValueArc& arc : value_arcs_) {
      if (!side[static_cast<size_t>(arc.value)] || side[static_cast<size_t>(arc.head)]) continue;
      choice.kept[static_cast<size_t>(arc.value)] = true;
      choice.bytes += arc.bytes;
    }
    for (const OpArc& arc : op_arcs_) {
      if (side[static_cast<size_t>(NodeOfOp(arc.op))]) choice.cost += arc.cost;
    }
    return choice;
  }

  const RunProblem& problem_;
  const Moment moment_;
  std::vector<bool> is_certain_;  // Values that every plan keeps, or that have no bytes.
  int64_t certain_bytes_ = 0;
  MaxFlow network_;  // Nodes: values, then operations, then the sink.
  const int32_t sink_;
  std::vector<bool> is_in_network_;
  std::vector<int32_t> values_;  // The values in the network.
  std::vector<ValueArc> value_arcs_;
  std::vector<OpArc> op_arcs_;
  int64_t all_bytes_ = 0;
  int64_t all_costs_ = 0;
};

// Follows the lower hull of (bytes, cost) down to the two choices around `room`. The multiplier at
// which both are equally good gives a better choice, or is the best.
OneCut FollowHull(MomentNetwork* network, int64_t room, Choice over, Choice under) {
  OneCut cut;
  for (int i = 0; i < kMaxMultipliers && under.cost > over.cost; ++i) {
    PollStop();
    const Multiplier multiplier = {under.cost - over.cost, over.bytes - under.bytes};
    auto [choice, bound] = network->Cut(multiplier, room);
    cut.added_cost = std::max(cut.added_cost, bound);
    const auto value = [&](const Choice& c) {
      return static_cast<__int128>(c.cost) * multiplier.denominator + multiplier.Of(c.bytes);
    };
    // The choice with the fewest bytes may not be the cheapest such choice, so equal bytes may be
    // better as well.
    const bool is_between = choice.bytes < over.bytes && choice.bytes >= under.bytes;
    if (!is_between || value(choice) >= value(over)) break;
    (choice.bytes > room ? over : under) = std::move(choice);
  }
  cut.fitting = std::move(under.kept);
  cut.cheaper = std::move(over.kept);
  return cut;
}

bool IsBetter(const PlanMeasures& a, const PlanMeasures& b, int64_t budget) {
  const int64_t peak_a = std::max(a.peak, budget);
  const int64_t peak_b = std::max(b.peak, budget);
  return peak_a != peak_b ? peak_a < peak_b : a.cost < b.cost;
}

}  // namespace

OneCut CutAtMoment(const RunProblem& problem, std::span<const OpId> order, size_t moment,
                   int64_t budget) {
  CKPLAN_CHECK(moment < order.size(), "the moment is a run of the order");
  MomentNetwork network(problem, order, moment);
  const auto op = static_cast<size_t>(order[moment].index());
  const int64_t room = budget - problem.written_bytes[op] - problem.workspace[op] +
                       problem.in_place_bytes[op] - network.certain_bytes();
  Choice all = network.KeepAll();
  if (all.bytes <= room) return {.fitting = all.kept, .cheaper = all.kept};
  Choice least = network.KeepLeast();
  if (least.bytes > room) return {.is_feasible = false, .missing_bytes = least.bytes - room};
  return FollowHull(&network, room, std::move(all), std::move(least));
}

Runs ExpandKept(const RunProblem& problem, std::span<const OpId> order, size_t moment,
                const std::vector<bool>& kept) {
  LazyRuns runs(problem);
  for (const OpId op : order.first(moment)) runs.Run(op);
  std::vector<bool> stays = kept;
  for (size_t i = 0; i < moment; ++i) {
    const int32_t op = order[i].index();
    if (problem.may_repeat[static_cast<size_t>(op)]) continue;
    for (const int32_t write : problem.writes[op]) stays[static_cast<size_t>(write)] = true;
  }
  runs.KeepOnly(stays);
  for (const OpId op : order.subspan(moment)) runs.Run(op);
  runs.ProvideResults();
  return std::move(runs).Take();
}

Runs FillWithCheaper(const RunProblem& problem, std::span<const OpId> order, size_t moment,
                     int64_t budget, const OneCut& cut, const MeasurePlan& measure,
                     int64_t max_trials) {
  std::vector<bool> kept = cut.fitting;
  Runs best = ExpandKept(problem, order, moment, kept);
  PlanMeasures best_figures = measure(best);
  std::vector<int32_t> more;
  for (int32_t value = 0; value < problem.value_count; ++value) {
    const auto at = static_cast<size_t>(value);
    if (cut.cheaper[at] && !cut.fitting[at]) more.push_back(value);
  }
  const auto cost = [&](int32_t value) {
    return problem.cost[static_cast<size_t>(problem.maker[static_cast<size_t>(value)])];
  };
  std::stable_sort(more.begin(), more.end(), [&](int32_t a, int32_t b) {
    return static_cast<__int128>(cost(a)) * problem.bytes[static_cast<size_t>(b)] >
           static_cast<__int128>(cost(b)) * problem.bytes[static_cast<size_t>(a)];
  });
  size_t next = 0;
  for (size_t batch = more.size(); next < more.size() && max_trials > 1; --max_trials) {
    PollStop();
    batch = std::min(batch, more.size() - next);
    const std::span<const int32_t> tried = std::span(more).subspan(next, batch);
    for (const int32_t value : tried) kept[static_cast<size_t>(value)] = true;
    Runs runs = ExpandKept(problem, order, moment, kept);
    const PlanMeasures figures = measure(runs);
    const bool is_better = IsBetter(figures, best_figures, budget);
    if (is_better) {
      best = std::move(runs);
      best_figures = figures;
    } else {
      for (const int32_t value : tried) kept[static_cast<size_t>(value)] = false;
    }
    if (is_better || batch == 1) {
      next += batch;
    } else {
      batch /= 2;
    }
  }
  return best;
}

}  // namespace ckplan
