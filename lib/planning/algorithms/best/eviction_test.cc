#include "lib/planning/algorithms/best/eviction.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <utility>

#include "lib/planning/algorithms/best/flat_simulation.h"
#include "lib/problem/schedule/simulate.h"
#include "lib/testing/best/random_steps.h"
#include "lib/testing/instances.h"

namespace ckplan {
namespace {

constexpr uint64_t kEvictionSeeds = Instances(uint64_t{150});

// Makes n operations in a row, each of which reads the one before, and n more that go back and read
// the results of the first: the shape of a training step. All values have 10 bytes, all costs are
// 1.
JointGraph ChainOf(int n) {
  JointGraphParts parts;
  for (int i = 0; i < 2 * n; ++i) {
    Value value;
    value.file_id = i;
    value.name = std::to_string(i);
    value.bytes = Bytes(10);
    const ValueId write = parts.values.push_back(std::move(value));
    Operation op;
    op.file_id = i;
    op.name = std::to_string(i);
    op.cost = Cost(1);
    op.writes = {write};
    if (i > 0) op.reads.emplace_back(static_cast<int32_t>(i - 1));
    if (i > n) op.reads.emplace_back(static_cast<int32_t>(2 * n - 1 - i));
    parts.ops.push_back(std::move(op));
  }
  parts.results = {ValueId(static_cast<int32_t>(2 * n - 1))};
  return JointGraph::Create(std::move(parts)).value();
}

}  // namespace

TEST_CASE("eviction: a chain on half its memory and on a tenth of it") {
  const JointGraph graph = ChainOf(100);
  const RunProblem problem(graph);
  const Runs order = OwnOrder(graph);
  const int64_t whole = PeakOf(problem, order);
  for (const auto& row : {std::pair(100, 200), {50, 260}, {20, 300}, {10, 420}}) {
    const int percent = row.first;
    const int most_runs = row.second;
    CAPTURE(percent);
    const std::optional<Runs> runs = BestEviction(problem, order, whole * percent / 100);
    REQUIRE(runs);
    CHECK(PeakOf(problem, *runs) <= whole * percent / 100);
    CHECK(runs->size() <= static_cast<size_t>(most_runs));
  }
  CHECK_FALSE(BestEviction(problem, order, 29));  // Two reads and a write do not fit.
}

TEST_CASE("eviction: plans of random steps are plans, fit, and keep the order") {
  uint64_t found = 0;
  for (uint64_t seed = 0; seed < kEvictionSeeds; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    RandomStepOptions options;
    options.op_count = static_cast<int>(rng.Between(4, 40));
    options.span = 12;
    options.percent_in_place = 30;
    options.percent_two_writes = 15;
    options.percent_single_runs = seed % 2 == 0 ? 25 : 0;
    const JointGraph graph = MakeRandomStep(&rng, options);
    const RunProblem problem(graph);
    const Runs order = RandomOrder(&rng, graph);
    Simulator simulator(graph);
    const int64_t budget = simulator.Run(order)->peak.count() * rng.Between(75, 99) / 100;
    for (const EvictionRule& rule : EvictionRules()) {
      const std::optional<Runs> runs = Evict(problem, order, budget, rule);
      if (!runs) continue;
      const Result<Simulation> simulation = simulator.Run(*runs);
      REQUIRE(simulation.ok());
      CHECK(simulation->peak.count() <= budget);
      CHECK(FirstRunsOf(graph, *runs) == order);
    }
    const std::optional<Runs> kept = BestEviction(problem, order, budget);
    const std::optional<Runs> free = BestEviction(problem, order, budget, FirstRuns::kFree);
    REQUIRE(kept.has_value() == free.has_value());
    if (!kept) continue;
    ++found;
    CHECK(simulator.Run(*kept)->peak.count() <= budget);
    CHECK(FirstRunsOf(graph, *kept) == order);
    CHECK(simulator.Run(*free)->peak.count() <= budget);
    CHECK(simulator.Run(*free)->cost <= simulator.Run(*kept)->cost);
  }
  CHECK(found > kEvictionSeeds / 3);
}

TEST_CASE("eviction: with enough memory it recomputes nothing") {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    const JointGraph graph = MakeRandomStep(&rng, {});
    const RunProblem problem(graph);
    const Runs order = RandomOrder(&rng, graph);
    CHECK(BestEviction(problem, order, PeakOf(problem, order)) == order);
  }
}

TEST_CASE("eviction: kept values are evicted last") {
  // o0 and o1 make equal values; both are read at the end. There is memory for only one of them.
  const JointGraph graph = ChainOf(6);
  const RunProblem problem(graph);
  const Runs order = OwnOrder(graph);
  const int64_t budget = PeakOf(problem, order) - 10;
  for (int32_t value = 0; value < 4; ++value) {
    CAPTURE(value);
    std::vector<bool> kept(static_cast<size_t>(problem.value_count), true);
    kept[static_cast<size_t>(value)] = false;
    const std::optional<Runs> runs = Evict(problem, order, budget, EvictionRule{}, kept);
    REQUIRE(runs);
    CHECK(std::count(runs->begin(), runs->end(), OpId(value)) == 2);
    CHECK(runs->size() == order.size() + 1);
  }
}

TEST_CASE("eviction: unread runs are dropped, with the order kept or free") {
  const JointGraph graph = ChainOf(3);  // 0 1 2 3, 4 reads 3 and 1, 5 reads 4 and 0.
  const RunProblem problem(graph);
  const auto runs = [](std::initializer_list<int32_t> ops) {
    Runs list;
    for (const int32_t op : ops) list.emplace_back(op);
    return list;
  };
  CHECK(DropUnread(problem, runs({0, 1, 2, 0, 3, 4, 0, 5, 1}), FirstRuns::kKeepOrder) ==
        runs({0, 1, 2, 3, 4, 0, 5}));
  CHECK(DropUnread(problem, runs({0, 1, 1, 2, 3, 4, 5}), FirstRuns::kKeepOrder) ==
        runs({0, 1, 1, 2, 3, 4, 5}));
  CHECK(DropUnread(problem, runs({0, 1, 1, 2, 3, 4, 5}), FirstRuns::kFree) ==
        runs({0, 1, 2, 3, 4, 5}));
  // This is the example of docs/algorithms.md.
  CHECK(BestEviction(problem, OwnOrder(graph), 30) == runs({0, 1, 2, 3, 4, 0, 5}));
  CHECK(DelayReruns(problem, runs({0, 1, 2, 0, 1, 3, 4, 5})) == runs({0, 1, 2, 3, 0, 1, 4, 5}));
}

}  // namespace ckplan
