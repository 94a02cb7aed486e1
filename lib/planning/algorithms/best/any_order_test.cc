#include "lib/planning/algorithms/best/any_order.h"

#include <doctest/doctest.h>

#include <optional>
#include <vector>

#include "lib/planning/algorithms/best/best.h"
#include "lib/planning/mip/mip.h"
#include "lib/problem/schedule/simulate.h"
#include "lib/testing/best/brute_force.h"
#include "lib/testing/best/random_instance.h"

namespace ckplan {
namespace {

// There are as many with sanitizers, since an eighth of them would contain too few of the rarest
// kind.
constexpr uint64_t kAnyOrderSeeds = 2500;
constexpr int kAnyOrderPercentChains = 30;

// Operation 0 reads nothing, 1 and 2 read 0, 3 reads 1, 4 reads 2 and 3.
JointGraph Fork() {
  JointGraphParts parts;
  const std::vector<std::vector<int32_t>> reads = {{}, {0}, {0}, {1}, {2, 3}};
  for (const std::vector<int32_t>& list : reads) {
    Value value;
    value.file_id = static_cast<int64_t>(parts.values.size());
    value.bytes = Bytes(1);
    Operation op;
    op.file_id = value.file_id;
    for (const int32_t read : list) op.reads.emplace_back(read);
    op.cost = Cost(1);
    op.writes = {parts.values.push_back(std::move(value))};
    parts.ops.push_back(std::move(op));
  }
  parts.results = {ValueId(4)};
  return JointGraph::Create(std::move(parts)).value();
}

}  // namespace

TEST_CASE("kinship: ancestors, descendants and chains of a fork") {
  const RunProblem problem(Fork());
  CHECK(AncestorsOf(problem, 3) == std::vector<bool>{true, true, false, false, false});
  CHECK(DescendantsOf(problem, 1) == std::vector<bool>{false, false, false, true, true});
  CHECK(FindLongestChain(problem, std::vector{OpId(4), OpId(2), OpId(0)}) ==
        std::vector{OpId(0), OpId(2), OpId(4)});
  CHECK(FindLongestChain(problem, std::vector{OpId(1), OpId(2), OpId(3)}) ==
        std::vector{OpId(1), OpId(3)});
  CHECK(FindLongestChain(problem, std::vector{OpId(2), OpId(3)}) == std::vector{OpId(2)});
  CHECK(FindLongestChain(problem, {}).empty());
}

TEST_CASE("any order: no plan costs less than the program says, whatever the moments") {
  if (!HasMipSolver()) return;
  uint64_t above_zero = 0;
  for (uint64_t seed = 1; seed <= kAnyOrderSeeds; ++seed) {
    CAPTURE(seed);
    RandomInstance instance(seed, kAnyOrderPercentChains);
    const std::vector<OpId> chain = FindLongestChain(instance.problem, instance.DrawOps(50));
    if (chain.empty()) continue;
    const AnyOrderOutcome outcome = SolveMomentsInAnyOrder(instance.problem, instance.order, chain,
                                                           instance.budget, kAmple.work)
                                        .value();
    const std::optional<int64_t> best = ExhaustiveMinCost(instance.problem, instance.budget);
    if (!best) continue;
    REQUIRE_FALSE(outcome.is_infeasible);
    CHECK(outcome.lower_bound <= *best - instance.OnceCost());
    CHECK(outcome.is_exact);
    if (outcome.lower_bound > 0) ++above_zero;
    REQUIRE(outcome.plan.has_value());
    const Runs runs = ExpandMoments(instance.problem, outcome.plan->order, outcome.plan->moments,
                                    outcome.plan->plan);
    REQUIRE(FlatSimulator(instance.problem).IsValid(runs));
    // A plan that fits and costs what the program says is the best of all plans.
    const FlatSimulation simulation = FlatSimulator(instance.problem).Run(runs);
    if (simulation.peak <= instance.budget) CHECK(simulation.cost >= *best);
  }
  CHECK(above_zero > kAnyOrderSeeds / 50);
}

TEST_CASE("any order: the loop finds plans, and its bound is one of any order") {
  if (!HasMipSolver()) return;
  uint64_t optimal = 0;
  uint64_t feasible = 0;
  uint64_t below_own_order = 0;
  for (uint64_t seed = 1; seed <= kAnyOrderSeeds; ++seed) {
    CAPTURE(seed);
    RandomInstance instance(seed, kAnyOrderPercentChains);
    const auto ops = instance.DrawOps(30);
    const LoopOutcome loop = SolveAnyOrderLoop(instance.graph, instance.problem, instance.order,
                                               ops, instance.budget, kAmple)
                                 .value();
    const std::optional<int64_t> best = ExhaustiveMinCost(instance.problem, instance.budget);
    if (!best) {
      CHECK_FALSE(loop.runs.has_value());
      continue;
    }
    ++feasible;
    CHECK_FALSE(loop.is_infeasible);
    CHECK(loop.lower_bound <= *best - instance.OnceCost());
    if (!loop.runs) continue;
    CHECK(loop.cost >= *best);
    CHECK(Simulator(instance.graph).Run(*loop.runs)->peak.count() <= instance.budget);
    if (loop.cost == *best) ++optimal;
    const std::optional<int64_t> own =
        ExhaustiveMinCost(instance.problem, instance.order, instance.budget);
    if (!own || loop.cost < *own) ++below_own_order;
  }
  CHECK(feasible > kAnyOrderSeeds / 6);
  CHECK(optimal * 2 >= feasible);
  CHECK(below_own_order > kAnyOrderSeeds / 100);
}

TEST_CASE("best: in any order its overhead is between its bounds and the proven optimum") {
  for (uint64_t seed = 1; seed <= kAnyOrderSeeds / 8; ++seed) {
    CAPTURE(seed);
    const RandomInstance instance(seed, kAnyOrderPercentChains);
    BestOptions options;
    options.budget = instance.budget;
    options.work.moves = 2'000;
    const BestOutcome outcome = SolveBest(instance.graph, options).value();
    const std::optional<int64_t> best = ExhaustiveMinCost(instance.problem, instance.budget);
    if (outcome.is_infeasible) CHECK_FALSE(best.has_value());
    if (!best) {
      CHECK_FALSE(outcome.runs.has_value());
      continue;
    }
    // The graph's cost includes operations that no result needs, which the exhaustive search leaves
    // out.
    const int64_t least = *best - instance.problem.total_cost;
    CHECK(outcome.any_order_bound <= least);
    if (!outcome.runs) continue;
    CHECK(outcome.overhead >= least);
    CHECK(outcome.lower_bound <= outcome.overhead);
    if (outcome.is_optimal && outcome.scope == BoundScope::kAnyOrder) {
      CHECK(outcome.overhead == least);
    }
  }
}

TEST_CASE("best: a plan proven the best of its order does not end the search in other orders") {
  if (!HasMipSolver()) return;
  int proven = 0;
  int better = 0;
  for (uint64_t seed = 1; seed <= kAnyOrderSeeds / 4; ++seed) {
    CAPTURE(seed);
    const RandomInstance instance(seed, kAnyOrderPercentChains);
    BestOptions options;
    options.budget = instance.budget;
    options.work.moves = 2'000;
    options.is_order_free = false;
    const BestOutcome own = SolveBest(instance.graph, options).value();
    if (!own.runs || !own.is_optimal || own.overhead <= own.any_order_bound) continue;
    ++proven;
    options.is_order_free = true;
    options.work.orders = 0;  // Otherwise, orders of little memory come first and settle the search
                              // at once.
    const BestOutcome outcome = SolveBest(instance.graph, options).value();
    const int64_t least = *ExhaustiveMinCost(instance.problem, instance.budget);
    CHECK(outcome.overhead == least - instance.problem.total_cost);
    if (outcome.overhead < own.overhead) ++better;
  }
  CHECK(proven > 0);
  CHECK(better > 0);
}

}  // namespace ckplan
