#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "lib/planning/algorithms/best/best.h"
#include "lib/planning/algorithms/best/curve/cut_rounding.h"
#include "lib/planning/algorithms/best/curve/nested_network.h"
#include "lib/planning/algorithms/best/curve/price_master.h"
#include "lib/planning/algorithms/best/curve/trade_off_curve.h"
#include "lib/problem/schedule/expand.h"
#include "lib/testing/best/brute_force.h"
#include "lib/testing/best/nested_bound.h"
#include "lib/testing/best/random_instance.h"
#include "lib/testing/graph_text.h"
#include "lib/testing/instances.h"
#include "lib/testing/random_joint_graph.h"

namespace ckplan {
namespace {

constexpr std::array kShares = {95, 90, 80, 70};

// A chain of four: keeping everything peaks at 20 bytes; within 16, a must run again, which
// costs 5.
Expansion ChainOfFour() {
  return ExpandTensorGraph(GraphFromText("a:4@5 -> b:4@2 -> c:4@9 -> d:1@1"));
}

JointGraph SomeGraph(Rng& rng, uint64_t seed) {
  if (seed % 3 == 0) return ChainJointGraph(rng, static_cast<int>(rng.Between(3, 4)));
  return RandomSmallGraph(rng, static_cast<int>(rng.Between(3, 7)));
}

// Returns the value of the linear program, rounded up. Each set of reruns is a point (bytes kept,
// cost of reruns); the value is that of their lower hull at the number of bytes that the budget
// leaves for kept values. Returns nothing if no set fits.
std::optional<int64_t> HullAt(const RunProblem& problem, const Runs& order, size_t moment,
                              int64_t budget) {
  const auto at = static_cast<size_t>(order[moment].index());
  const int64_t room =
      budget - problem.written_bytes[at] - problem.workspace[at] + problem.in_place_bytes[at];
  std::vector<std::pair<int64_t, int64_t>> points;
  for (uint32_t reruns = 0; reruns < (uint32_t{1} << moment); ++reruns) {
    std::vector<bool> is_rerun(static_cast<size_t>(problem.op_count));
    std::vector<bool> is_made(is_rerun.size());
    bool is_allowed = true;
    int64_t cost = 0;
    for (size_t i = 0; i < moment; ++i) {
      const auto op = static_cast<size_t>(order[i].index());
      is_made[op] = true;
      is_rerun[op] = (reruns >> i & 1) != 0;
      is_allowed = is_allowed && (!is_rerun[op] || problem.may_repeat[op]);
      if (is_rerun[op]) cost += problem.cost[op];
    }
    if (!is_allowed) continue;
    int64_t bytes = 0;
    for (int32_t value = 0; value < problem.value_count; ++value) {
      const auto producer = static_cast<size_t>(problem.producer[static_cast<size_t>(value)]);
      if (!is_made[producer]) continue;
      bool is_needed = problem.is_result[static_cast<size_t>(value)];
      bool is_read_now = false;
      for (const int32_t reader : problem.readers[value]) {
        const auto position = static_cast<size_t>(
            std::find(order.begin(), order.end(), OpId(reader)) - order.begin());
        if (position == order.size()) continue;
        is_needed = is_needed || position >= moment || is_rerun[static_cast<size_t>(reader)];
        is_read_now = is_read_now || position == moment;
      }
      const bool is_kept = is_read_now || (is_needed && !is_rerun[producer]);
      if (is_kept) bytes += problem.bytes[static_cast<size_t>(value)];
    }
    points.emplace_back(bytes, cost);
  }
  std::optional<int64_t> least;
  for (const auto& [few, dear] : points) {
    if (few > room) continue;
    for (const auto& [many, cheap] : points) {
      const int64_t width = many - few;
      const int64_t value =
          many <= room ? dear : (dear * (many - room) + cheap * (room - few) + width - 1) / width;
      least = std::min(least.value_or(value), value);
    }
  }
  return least;
}

// Prices from 0 to about twice what makes all bytes worth all costs.
std::vector<int64_t> RandomPrices(Rng* rng, const NestedNetwork& network) {
  std::vector<int64_t> prices;
  for (size_t i = 0; i < network.moment_count(); ++i) {
    prices.push_back(rng->Chance(30) ? 0 : rng->Between(0, int64_t{1} << 32));
  }
  return prices;
}

}  // namespace

TEST_CASE("curve: a bound line rounds up to whole costs, and back to whole bytes") {
  const BoundLine line{35, 2, 1};  // (35 - 2 B) / 2
  CHECK(line.CostWithin(0) == 18);
  CHECK(line.CostWithin(17) == 1);
  CHECK(line.CostWithin(18) == 0);
  CHECK(line.MinBudgetFor(0) == 18);
  CHECK(line.MinBudgetFor(10) == 8);
  CHECK(line.MinBudgetFor(18) == 0);
  for (int64_t cost = 0; cost < 20; ++cost) {
    const int64_t least = line.MinBudgetFor(cost);
    CHECK(line.CostWithin(least) <= cost);
    if (least > 0) CHECK(line.CostWithin(least - 1) > cost);
  }
}

TEST_CASE("curve: the cut of a chain of four keeps all, or runs a again") {
  const Expansion chain = ChainOfFour();
  const RunProblem problem(chain.graph);
  const Runs order = RequiredOwnOrder(problem);
  const std::vector<int32_t> moments = {
      static_cast<int32_t>(FlatSimulator(problem).Run(order).peak_step)};
  NestedNetwork network(problem, order, moments);
  const NestedChoice all = network.KeepAll();
  CHECK(all.cost == 0);
  CHECK(all.bytes[0] + network.fixed_bytes(0) == 20);
  CHECK(network.MinBytes(0) == 16);
  const std::vector<int64_t> dear = {int64_t{2} << network.price_shift()};  // 8 for keeping a.
  network.Cut(dear, NestedNetwork::Ties::kKeep);
  CHECK(network.Choice().cost == 5);
  const std::vector<int64_t> even = {int64_t{5} << network.price_shift() >> 2};  // 5 for keeping a.
  CHECK(network.Cut(even, NestedNetwork::Ties::kKeep).CostWithin(16) == 5);
  CHECK(network.Cut(even, NestedNetwork::Ties::kKeep).CostWithin(20) == 0);
}

TEST_CASE("curve: the master program mixes two choices, and prices the room by their slope") {
  PriceMaster master({0, {10}});
  master.Add({6, {4}});
  const std::vector<int64_t> room = {7};
  master.Solve(room, 100);
  CHECK(master.value() == doctest::Approx(3));
  CHECK(master.prices()[0] == doctest::Approx(1));
  // With two moments, only the one without room has a price.
  PriceMaster two({0, {10, 3}});
  two.Add({6, {4, 3}});
  two.Solve(std::vector<int64_t>{7, 3}, 100);
  CHECK(two.value() == doctest::Approx(3));
  CHECK(two.prices()[1] == doctest::Approx(0));
}

TEST_CASE("curve: with one moment, the best bound is the value of the linear program") {
  constexpr uint64_t kDraws = Instances(uint64_t{500});
  uint64_t positive = 0;
  for (uint64_t seed = 0; seed < kDraws; ++seed) {
    Rng rng(seed);
    const RunProblem problem(SomeGraph(rng, seed));
    const Runs order = RequiredOwnOrder(problem);
    for (int32_t moment = 0; moment < static_cast<int32_t>(order.size()); ++moment) {
      NestedNetwork network(problem, order, std::vector{moment});
      for (int64_t budget = 4; budget < 40; budget += 5) {
        CAPTURE(seed);
        CAPTURE(moment);
        CAPTURE(budget);
        const std::optional<int64_t> least = HullAt(problem, order, At(moment), budget);
        REQUIRE(least.has_value() == (network.MinBytes(0) <= budget));
        if (least) CHECK(BestBoundOf(&network, budget) == *least);
        if (least.value_or(0) > 0) ++positive;
      }
    }
  }
  CHECK(positive > kDraws);
}

TEST_CASE("curve: bounds of amounts near the limits hold") {
  for (uint64_t seed = 0; seed < Instances(uint64_t{300}); ++seed) {
    Rng rng(seed);
    JointGraph small = SomeGraph(rng, seed);
    JointGraphParts parts = PartsOf(small);
    constexpr int64_t kBytes = int64_t{1} << 48;
    constexpr int64_t kCost = int64_t{1} << 44;
    for (const ValueId id : parts.values.ids()) {
      parts.values[id].bytes = kBytes * parts.values[id].bytes;
    }
    for (const OpId id : parts.ops.ids()) {
      parts.ops[id].cost = kCost * parts.ops[id].cost;
      parts.ops[id].workspace = kBytes * parts.ops[id].workspace;
    }
    const RunProblem large(JointGraph::Create(std::move(parts)).value());
    const RunProblem problem(small);
    const Runs order = RequiredOwnOrder(problem);
    const int64_t budget = PeakOf(problem, order) - 2;
    for (int32_t moment = 0; moment < static_cast<int32_t>(order.size()); ++moment) {
      CAPTURE(seed);
      CAPTURE(moment);
      NestedNetwork network(problem, order, std::vector{moment});
      NestedNetwork scaled(large, order, std::vector{moment});
      REQUIRE(scaled.MinBytes(0) == kBytes * network.MinBytes(0));
      if (network.MinBytes(0) > budget) continue;
      const int64_t bound = BestBoundOf(&scaled, kBytes * budget);
      CHECK((bound + kCost - 1) / kCost == BestBoundOf(&network, budget));
    }
  }
}

TEST_CASE("curve: for whatever moments and prices, no bound is above the optimum") {
  int tight = 0;
  int tested = 0;
  int tight_in_flight = 0;
  for (uint64_t seed = 1; seed <= Instances(14'000); ++seed) {
    CAPTURE(seed);
    const InFlight in_flight = seed % 7 < 5 ? InFlight::kOne : InFlight::kSeveral;
    RandomInstance instance(seed, 50, in_flight);
    std::vector<int32_t> moments;
    for (size_t i = 0; i < instance.order.size(); ++i) {
      if (instance.rng.Chance(30)) moments.push_back(static_cast<int32_t>(i));
    }
    if (moments.empty()) continue;
    const auto least = ExhaustiveMinCost(instance.problem, instance.order, instance.budget);
    if (!least) continue;
    const int64_t added = *least - instance.OnceCost();
    NestedNetwork network(instance.problem, instance.order, moments);
    for (size_t i = 0; i < moments.size(); ++i) REQUIRE(network.MinBytes(i) <= instance.budget);
    for (int trial = 0; trial < 4; ++trial) {
      const auto ties = trial % 2 == 0 ? NestedNetwork::Ties::kKeep : NestedNetwork::Ties::kBreak;
      const BoundLine line = network.Cut(RandomPrices(&instance.rng, network), ties);
      REQUIRE(line.CostWithin(instance.budget) <= added);
      REQUIRE(line.MinBudgetFor(added) <= instance.budget);
      ++tested;
    }
    // Random prices rarely give the highest bound. The best price of one moment often does.
    int64_t highest = 0;
    for (int32_t moment = 0; moment < static_cast<int32_t>(instance.order.size()); ++moment) {
      NestedNetwork one(instance.problem, instance.order, std::vector{moment});
      highest = std::max(highest, BestBoundOf(&one, instance.budget));
    }
    REQUIRE(highest <= added);
    const bool is_tight = added > 0 && highest == added;
    (in_flight == InFlight::kOne ? tight : tight_in_flight) += is_tight;
  }
  CAPTURE(tight);
  CAPTURE(tight_in_flight);
  CHECK(tested > Instances(5'000));
  CHECK(tight > Instances(100));
  CHECK(tight_in_flight > Instances(100));
}

TEST_CASE("curve: what it reads is a plan within the budget, and its bound mostly is its cost") {
  // Without and with other micro-batches. Shares of fewer instances vary too much, so sanitizers
  // run them all.
  std::array<int, 2> tested{};
  std::array<int, 2> optimal{};
  std::array<int, 2> proven{};
  for (uint64_t seed = 1; seed <= 4'000; ++seed) {
    CAPTURE(seed);
    const size_t is_several = seed % 2;
    const RandomInstance instance(seed, 50, static_cast<InFlight>(is_several));
    BestProblem problem(instance.graph, {}, instance.problem.others);
    TradeOffCurve curve(&problem, instance.order);
    curve.Trace(kNormalCurve);
    const int64_t idle = instance.OnceCost() - instance.problem.total_cost;
    for (const int share : kShares) {
      const int64_t budget = PeakOf(instance.problem, instance.order) * share / 100;
      const auto least = ExhaustiveMinCost(instance.problem, instance.order, budget);
      curve.Read(budget, kNormalCurve);
      const TradeOffCurve::PlanOnCurve* const plan = curve.BestWithin(budget);
      if (!least) {
        CHECK(plan == nullptr);
        continue;
      }
      CHECK(curve.least_peak() <= budget);
      const int64_t added = idle + *least - instance.OnceCost();
      CHECK(curve.BoundWithin(budget) <= added);
      CHECK(curve.MinPeakWithin(added) <= budget);
      ++tested[is_several];
      proven[is_several] += curve.BoundWithin(budget) == added;
      if (plan == nullptr) continue;
      CHECK(plan->peak == PeakOf(instance.problem, plan->runs));
      CHECK(plan->peak <= budget);
      CHECK(plan->overhead >= added);
      optimal[is_several] += plan->overhead == added;
    }
  }
  for (const size_t is_several : {size_t{0}, size_t{1}}) {
    CAPTURE(tested[is_several]);
    CAPTURE(optimal[is_several]);
    CAPTURE(proven[is_several]);
    CHECK(tested[is_several] > 500);
    CHECK(optimal[is_several] * 100 >= tested[is_several] * 95);
    CHECK(proven[is_several] * 100 >= tested[is_several] * (is_several ? 30 : 35));
  }
}

TEST_CASE("curve: more reading never makes a plan or a bound worse") {
  for (uint64_t seed = 1; seed <= Instances(100); ++seed) {
    CAPTURE(seed);
    const RandomInstance instance(seed, 50);
    BestProblem problem(instance.graph);
    TradeOffCurve curve(&problem, instance.order);
    const int64_t keep_all = curve.Fastest().peak;
    std::vector<int64_t> bounds;
    std::vector<int64_t> costs;
    const auto check = [&] {
      for (size_t i = 0; i < kShares.size(); ++i) {
        const int64_t budget = keep_all * kShares[i] / 100;
        const auto* const plan = curve.BestWithin(budget);
        const int64_t cost = plan == nullptr ? std::numeric_limits<int64_t>::max() : plan->overhead;
        if (bounds.size() <= i) {
          bounds.push_back(curve.BoundWithin(budget));
          costs.push_back(cost);
        }
        CHECK(curve.BoundWithin(budget) >= bounds[i]);
        CHECK(cost <= costs[i]);
        bounds[i] = curve.BoundWithin(budget);
        costs[i] = cost;
      }
      CHECK(curve.Points() == FrontOf(curve.Points()));
    };
    check();
    curve.Read(keep_all * 6 / 10, kQuickCurve);
    check();
    curve.Trace(kQuickCurve);
    check();
    curve.ReadWithin(curve.order().size() > 3 ? instance.OnceCost() / 10 : 0, kNormalCurve);
    check();
    curve.Trace(kThoroughCurve);
    check();
  }
}

// A value that must not be made again may be dead at an early moment, and yet needed to make what
// is kept across a later one.
TEST_CASE("curve: plans of larger graphs with operations that must not repeat are valid") {
  size_t plans = 0;
  for (uint64_t seed = 1; seed <= Instances(300); ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    RandomJointOptions options;
    options.ops = static_cast<int>(rng.Between(20, 80));
    options.never_repeat = static_cast<int>(rng.Between(5, 40));
    const JointGraph graph = RandomJointGraph(rng, options);
    BestProblem problem(graph);
    TradeOffCurve* const curve = problem.curve();
    curve->Trace(kNormalCurve);
    curve->ReadWithin(curve->Fastest().peak, kNormalCurve);
    plans += curve->plans().size();
  }
  CHECK(plans > Instances(size_t{600}));
}

TEST_CASE("curve: reruns that the budget leaves room for are left out") {
  const Expansion chain = ChainOfFour();
  const RunProblem problem(chain.graph);
  const Runs order = RequiredOwnOrder(problem);
  FlatSimulator simulator(problem);
  const std::optional<Runs> runs =
      EvictedAround(problem, order, 16, {1, 1, 2, true}, {}, &simulator);
  REQUIRE(runs);
  const Runs fewer = WithoutSpareReruns(problem, *runs, 16);
  CHECK(PeakOf(problem, fewer) == 16);
  CHECK(CostOf(problem, fewer) == CostOf(problem, order) + 5);
  CHECK(WithoutSpareReruns(problem, fewer, 20) == order);
  CHECK(WithoutSpareReruns(problem, order, 16) == order);
}

}  // namespace ckplan
