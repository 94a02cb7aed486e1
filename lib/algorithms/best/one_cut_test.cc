#include "lib/algorithms/best/one_cut.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "lib/algorithms/best/flat_simulation.h"
#include "lib/algorithms/best/required_ops.h"
#include "lib/schedule/simulate.h"
#include "lib/testing/best/brute_force.h"
#include "lib/testing/instances.h"

namespace ckplan {
namespace {

constexpr uint64_t kHullSeeds = Instances(uint64_t{1000});

JointGraph SomeGraph(Rng& rng, uint64_t seed) {
  if (seed % 3 == 0) return ChainJointGraph(rng, static_cast<int>(rng.Between(3, 4)));
  return RandomSmallGraph(rng, static_cast<int>(rng.Between(3, 7)));
}

PlanMeasures FiguresOf(const JointGraph& graph, const Runs& runs) {
  const Simulation simulation = Simulator(graph).Run(runs).value();
  return {simulation.peak.count(), simulation.cost.count()};
}

// Five layers of 4 bytes and their gradients; layer i costs 10 + i.
JointGraph Layers() {
  JointGraphParts parts;
  parts.name = "layers";
  const auto add = [&](std::vector<ValueId> reads, int64_t bytes, int64_t cost) {
    Value value;
    value.file_id = static_cast<int64_t>(parts.values.size());
    value.bytes = Bytes(bytes);
    Operation op;
    op.file_id = value.file_id;
    op.reads = std::move(reads);
    op.cost = Cost(cost);
    op.writes = {parts.values.push_back(std::move(value))};
    parts.ops.push_back(op);
    return op.writes[0];
  };
  std::vector<ValueId> layers;
  for (int i = 0; i < 5; ++i) {
    layers.push_back(add(i == 0 ? std::vector<ValueId>{} : std::vector{layers.back()}, 4, 10 + i));
  }
  ValueId gradient = add({layers.back()}, 1, 1);
  for (int i = 3; i >= 0; --i) gradient = add({gradient, layers[static_cast<size_t>(i)]}, 1, 1);
  parts.results = {gradient};
  return JointGraph::Create(std::move(parts)).value();
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
      const auto maker = static_cast<size_t>(problem.maker[static_cast<size_t>(value)]);
      if (!is_made[maker]) continue;
      bool is_needed = problem.is_result[static_cast<size_t>(value)];
      bool is_read_now = false;
      for (const int32_t reader : problem.readers[value]) {
        const auto position = static_cast<size_t>(
            std::find(order.begin(), order.end(), OpId(reader)) - order.begin());
        if (position == order.size()) continue;
        is_needed = is_needed || position >= moment || is_rerun[static_cast<size_t>(reader)];
        is_read_now = is_read_now || position == moment;
      }
      const bool is_kept = is_read_now || (is_needed && !is_rerun[maker]);
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

}  // namespace

TEST_CASE("one cut: layers, worked by hand") {
  // At operation 5, which writes 1 byte, all five layers are needed: 20 bytes. Its read stays, and
  // 16 bytes - 1 - 4 = 11 have room for two of the others. So two must be recomputed: the first
  // two, where the second needs the first, or layer 0 and another one whose input is kept.
  const JointGraph graph = Layers();
  const RunProblem problem(graph);
  const Runs order = RequiredOwnOrder(problem);
  const OneCut cut = CutAtMoment(problem, order, 5, 16);
  REQUIRE(cut.is_feasible);
  // The relaxation recomputes 5 of the 16 bytes. The cheapest are layer 0's, at 10 for 4 bytes, and
  // then layer 1's, of which one byte is needed: 10 + 11/4, rounded up.
  CHECK(cut.added_cost == 13);
  CHECK(*ExhaustiveLeastCost(problem, order, 16) - CostOf(problem, order) == 21);
  const Runs runs = ExpandKept(problem, order, 5, cut.fitting);
  CHECK(FiguresOf(graph, runs).cost - CostOf(problem, order) >= 21);
  CHECK(CutAtMoment(problem, order, 5, 21).added_cost == 0);
  CHECK(!CutAtMoment(problem, order, 5, 4).is_feasible);
}

TEST_CASE("one cut: never above the least cost of any plan of the order") {
  int feasible = 0;
  int tight = 0;
  for (uint64_t seed = 0; seed < 1500; ++seed) {
    Rng rng(seed);
    const JointGraph graph = SomeGraph(rng, seed);
    const RunProblem problem(graph);
    const Runs order = RequiredOwnOrder(problem);
    const int64_t once = CostOf(problem, order);
    const int64_t peak = FiguresOf(graph, order).peak;
    const int64_t budget = peak - rng.Between(1, std::max<int64_t>(1, peak / 3));
    const auto least = ExhaustiveLeastCost(problem, order, budget);
    int64_t best = 0;
    for (size_t moment = 0; moment < order.size(); ++moment) {
      CAPTURE(seed);
      CAPTURE(moment);
      const OneCut cut = CutAtMoment(problem, order, moment, budget);
      if (!cut.is_feasible) CHECK(!least.has_value());
      if (least) CHECK(cut.added_cost <= *least - once);
      best = std::max(best, cut.added_cost);
    }
    if (!least) continue;
    ++feasible;
    if (best == *least - once) ++tight;
  }
  CHECK(feasible > 200);
  CHECK(tight > feasible / 4);
}

TEST_CASE("one cut: the bound is the value of the linear program") {
  uint64_t positive = 0;
  for (uint64_t seed = 0; seed < kHullSeeds; ++seed) {
    Rng rng(seed);
    const RunProblem problem(SomeGraph(rng, seed));
    const Runs order = RequiredOwnOrder(problem);
    for (size_t moment = 0; moment < order.size(); ++moment) {
      for (int64_t budget = 4; budget < 40; budget += 5) {
        CAPTURE(seed);
        CAPTURE(moment);
        CAPTURE(budget);
        const OneCut cut = CutAtMoment(problem, order, moment, budget);
        const std::optional<int64_t> least = HullAt(problem, order, moment, budget);
        REQUIRE(cut.is_feasible == least.has_value());
        if (least) CHECK(cut.added_cost == *least);
        if (least.value_or(0) > 0) ++positive;
      }
    }
  }
  CHECK(positive > kHullSeeds);
}

TEST_CASE("one cut: bounds of amounts near the limits hold") {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Rng rng(seed);
    JointGraph small = SomeGraph(rng, seed);
    JointGraphParts parts = PartsOf(small);
    constexpr int64_t kBytes = int64_t{1} << 48;
    constexpr int64_t kCost = int64_t{1} << 44;
    for (const ValueId id : parts.values.ids())
      parts.values[id].bytes = kBytes * parts.values[id].bytes;
    for (const OpId id : parts.ops.ids()) {
      parts.ops[id].cost = kCost * parts.ops[id].cost;
      parts.ops[id].workspace = kBytes * parts.ops[id].workspace;
    }
    const RunProblem large(JointGraph::Create(std::move(parts)).value());
    const RunProblem problem(small);
    const Runs order = RequiredOwnOrder(problem);
    const int64_t peak = FiguresOf(small, order).peak;
    for (size_t moment = 0; moment < order.size(); ++moment) {
      CAPTURE(seed);
      CAPTURE(moment);
      const OneCut cut = CutAtMoment(problem, order, moment, peak - 2);
      const OneCut scaled = CutAtMoment(large, order, moment, kBytes * (peak - 2));
      CHECK(scaled.is_feasible == cut.is_feasible);
      CHECK((scaled.added_cost + kCost - 1) / kCost == cut.added_cost);
    }
  }
}

TEST_CASE("one cut: expansions are plans, and keeping all is the order itself") {
  for (uint64_t seed = 0; seed < 500; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    const JointGraph graph = SomeGraph(rng, seed);
    const RunProblem problem(graph);
    const Runs order = RequiredOwnOrder(problem);
    const auto moment = static_cast<size_t>(rng.Between(0, static_cast<int64_t>(order.size()) - 1));
    std::vector<bool> kept(static_cast<size_t>(problem.value_count), true);
    CHECK(ExpandKept(problem, order, moment, kept) == order);
    for (size_t i = 0; i < kept.size(); ++i) kept[i] = rng.Chance(50);
    CHECK(Simulator(graph).Run(ExpandKept(problem, order, moment, kept)).ok());
  }
}

TEST_CASE("one cut: filling up never makes the plan worse") {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    const JointGraph graph = ChainJointGraph(rng, static_cast<int>(rng.Between(4, 12)));
    const RunProblem problem(graph);
    const Runs order = RequiredOwnOrder(problem);
    const Simulation own = Simulator(graph).Run(order).value();
    const int64_t budget = own.peak.count() * 3 / 4;
    const OneCut cut = CutAtMoment(problem, order, own.peak_step, budget);
    if (!cut.is_feasible) continue;
    const auto measure = [&](const Runs& runs) { return FiguresOf(graph, runs); };
    const PlanMeasures start = measure(ExpandKept(problem, order, own.peak_step, cut.fitting));
    const PlanMeasures filled =
        measure(FillWithCheaper(problem, order, own.peak_step, budget, cut, measure, 100));
    CHECK(std::max(filled.peak, budget) <= std::max(start.peak, budget));
    if (start.peak <= budget) CHECK(filled.cost <= start.cost);
    if (filled.peak <= budget) CHECK(filled.cost - own.cost.count() >= cut.added_cost);
  }
}

TEST_CASE("one cut: a budget that no plan of the order fits lacks at least the reported bytes") {
  uint64_t missed = 0;
  for (uint64_t seed = 1; seed <= kHullSeeds; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    const JointGraph graph = SomeGraph(rng, seed);
    const RunProblem problem(graph);
    const Runs order = RequiredOwnOrder(problem);
    const size_t moment = Simulator(graph).Run(order).value().peak_step;
    const OneCut cut = CutAtMoment(problem, order, moment, 0);
    if (cut.is_feasible) continue;  // No value occupies memory there.
    ++missed;
    CHECK(CutAtMoment(problem, order, moment, cut.missing_bytes).is_feasible);
    CHECK_FALSE(CutAtMoment(problem, order, moment, cut.missing_bytes - 1).is_feasible);
    CHECK_FALSE(ExhaustiveLeastCost(problem, order, cut.missing_bytes - 1).has_value());
  }
  CHECK(missed * 10 > kHullSeeds * 9);
}

}  // namespace ckplan
