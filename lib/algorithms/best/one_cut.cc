#include "lib/algorithms/best/one_cut.h"

#include <algorithm>
#include <utility>

#include "lib/algorithms/best/moment_network.h"
#include "lib/base/check.h"
#include "lib/base/stop.h"
#include "lib/runs/lazy_runs.h"

namespace ckplan {
namespace {

constexpr int kMaxMultipliers = 64;

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

// The cuts of the network.
//
// Capacities are costs times 2^shift, rounded down: for each multiplier the largest shift at which
// their sum stays below 2^60. Since capacities never exceed the true ones, the minimum cut never
// exceeds the true one, so its bounds hold.
//
// Nothing overflows 128 bits: while λ·bytes·2^shift is below 2^60, its numerator is below 2^60
// times the denominator, which is a difference of bytes and at most 2^56.
class PricedNetwork {
 public:
  PricedNetwork(const RunProblem& problem, std::span<const OpId> order, size_t moment)
      : problem_(problem), network_(problem, order, moment) {
    for (const ValueArc& arc : network_.value_arcs()) all_bytes_ += arc.bytes;
    for (const OpArc& arc : network_.op_arcs()) all_costs_ += arc.cost;
  }

  int64_t certain_bytes() const { return network_.certain_bytes(); }

  // Keeps all needed values.
  Choice KeepAll() const {
    Choice choice = {0, 0, network_.is_certain()};
    for (const ValueArc& arc : network_.value_arcs()) {
      if (!network_.IsNeeded(arc.value)) continue;
      choice.kept[static_cast<size_t>(arc.value)] = true;
      choice.bytes += problem_.bytes[static_cast<size_t>(arc.value)];
    }
    return choice;
  }

  // Keeps the fewest bytes, whatever the reruns cost.
  Choice KeepLeast() {
    for (const ValueArc& arc : network_.value_arcs()) network_.SetCapacity(arc.id, arc.bytes);
    for (const OpArc& arc : network_.op_arcs()) network_.SetCapacity(arc.id, 0);
    network_.Solve();
    return ChoiceOfCut();
  }

  // Returns a choice of about the least cost + λ·bytes, and the proven bound for this room.
  std::pair<Choice, int64_t> Cut(const Multiplier& multiplier, int64_t room) {
    const int shift = ShiftFor(multiplier);
    for (const ValueArc& arc : network_.value_arcs()) {
      const __int128 price =
          shift >= 0 ? Shifted(multiplier.Of(arc.bytes), shift) / multiplier.denominator
                     : Shifted(multiplier.Of(arc.bytes) / multiplier.denominator, shift);
      network_.SetCapacity(arc.id, static_cast<int64_t>(price));
    }
    for (const OpArc& arc : network_.op_arcs()) {
      network_.SetCapacity(arc.id, static_cast<int64_t>(Shifted(arc.cost, shift)));
    }
    const int64_t least_cut = network_.Solve();
    return {ChoiceOfCut(), CostBound(least_cut, multiplier, room, shift)};
  }

 private:
  using ValueArc = MomentNetwork::ValueArc;
  using OpArc = MomentNetwork::OpArc;

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

  Choice ChoiceOfCut() const {
    Choice choice = {0, 0, network_.is_certain()};
    for (const ValueArc& arc : network_.value_arcs()) {
      if (!network_.IsCut(arc)) continue;
      choice.kept[static_cast<size_t>(arc.value)] = true;
      choice.bytes += arc.bytes;
    }
    for (const OpArc& arc : network_.op_arcs()) {
      if (network_.IsCut(arc)) choice.cost += arc.cost;
    }
    return choice;
  }

  const RunProblem& problem_;
  MomentNetwork network_;
  int64_t all_bytes_ = 0;
  int64_t all_costs_ = 0;
};

// Follows the lower hull of (bytes, cost) down to the two choices around `room`. The multiplier at
// which both are equally good gives a better choice, or is the best.
OneCut FollowHull(PricedNetwork* network, int64_t room, Choice over, Choice under) {
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
  PricedNetwork network(problem, order, moment);
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
