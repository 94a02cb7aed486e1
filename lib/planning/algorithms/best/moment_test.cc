#include <doctest/doctest.h>

#include <algorithm>
#include <optional>

#include "lib/planning/algorithms/best/best.h"
#include "lib/planning/algorithms/best/flat_simulation.h"
#include "lib/planning/algorithms/best/moment_loop.h"
#include "lib/planning/algorithms/best/moment_program.h"
#include "lib/planning/mip/mip.h"
#include "lib/problem/schedule/simulate.h"
#include "lib/testing/best/brute_force.h"
#include "lib/testing/best/random_instance.h"
#include "lib/testing/best/random_steps.h"
#include "lib/testing/instances.h"

namespace ckplan {

namespace {

constexpr uint64_t kMomentSeeds = Instances(uint64_t{1500});
constexpr int kMomentPercentChains = 40;

// Draws moments, and operations before them whose reruns are charged.
ChargedSteps RandomCharges(RandomInstance* instance) {
  ChargedSteps charged;
  const auto size = static_cast<int32_t>(instance->order.size());
  for (int32_t i = 0; i < size; ++i) {
    if (!instance->rng.Chance(40)) continue;
    charged.moments.push_back(i);
    for (int32_t before = 0; before < i; ++before) {
      const OpId op = instance->order[static_cast<size_t>(before)];
      if (instance->rng.Chance(40)) charged.reruns.push_back({i, op});
    }
  }
  return charged;
}

LoopOutcome SolvedLoop(const RandomInstance& instance, const LoopLimits& limits) {
  return SolveMomentLoop(instance.graph, instance.problem, instance.order, instance.budget, limits)
      .value();
}

JointGraph LargerStep(uint64_t seed, int ops) {
  Rng rng(seed);
  RandomStepOptions options;
  options.op_count = ops;
  return MakeRandomStep(&rng, options);
}

// A training step whose program presolving alone does not solve, with this share of the memory that
// its own order needs.
struct LargerInstance {
  LargerInstance(uint64_t seed, int ops, int64_t percent)
      : graph(LargerStep(seed, ops)),
        problem(graph),
        order(OwnOrder(graph)),
        budget(PeakOf(problem, order) * percent / 100) {}

  // Returns the outcome of the first program alone.
  LoopOutcome SolvedOnce(std::optional<int64_t> enough = std::nullopt) const {
    LoopLimits limits = kAmple;
    limits.rounds = 1;
    limits.enough = enough;
    return SolveMomentLoop(graph, problem, order, budget, limits).value();
  }

  JointGraph graph;
  RunProblem problem;
  Runs order;
  int64_t budget;
};

}  // namespace

TEST_CASE("moments: no plan of the order costs less than the program says, for any charges") {
  if (!HasMipSolver()) return;
  uint64_t above_zero = 0;
  for (uint64_t seed = 1; seed <= kMomentSeeds; ++seed) {
    CAPTURE(seed);
    RandomInstance instance(seed, kMomentPercentChains);
    const ChargedSteps charged = RandomCharges(&instance);
    if (charged.moments.empty()) continue;
    const MomentOutcome outcome =
        SolveMoments(instance.problem, instance.order, charged, instance.budget, {kAmple.work})
            .value();
    const std::optional<int64_t> best =
        ExhaustiveMinCost(instance.problem, instance.order, instance.budget);
    if (!best) continue;
    REQUIRE_FALSE(outcome.is_infeasible);
    CHECK(outcome.lower_bound <= *best - instance.OnceCost());
    CHECK(outcome.is_exact);
    if (outcome.lower_bound > 0) ++above_zero;
  }
  CHECK(above_zero >= kMomentSeeds / 50);
}

TEST_CASE("moments: the loop finds the best plan of an order, or says that it did not") {
  if (!HasMipSolver()) return;
  uint64_t optimal = 0;
  uint64_t feasible = 0;
  for (uint64_t seed = 1; seed <= kMomentSeeds; ++seed) {
    CAPTURE(seed);
    const RandomInstance instance(seed, kMomentPercentChains);
    const LoopOutcome loop = SolvedLoop(instance, kAmple);
    const std::optional<int64_t> best =
        ExhaustiveMinCost(instance.problem, instance.order, instance.budget);
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
  }
  CHECK(feasible > kMomentSeeds / 6);
  CHECK(optimal * 10 >= feasible * 9);
}

TEST_CASE("moments: a program ends once its bound is above what is enough") {
  if (!HasMipSolver()) return;
  int ended_early = 0;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    CAPTURE(seed);
    const LargerInstance instance(seed, 60, 75);
    const LoopOutcome whole = instance.SolvedOnce();
    if (whole.is_infeasible || whole.lower_bound == 0) continue;
    const int64_t enough = whole.lower_bound / 2;
    const LoopOutcome ended = instance.SolvedOnce(enough);
    CHECK(ended.lower_bound > enough);
    CHECK(ended.lower_bound <= whole.lower_bound);
    // Otherwise, the only program was solved to its end.
    if (ended.lower_bound < whole.lower_bound) ++ended_early;
  }
  CHECK(ended_early > 0);
}

TEST_CASE("moments: a program ends with a plan that fits and is enough") {
  if (!HasMipSolver()) return;
  int ended_early = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    const LargerInstance instance(seed, 40, 87);
    const LoopOutcome whole = instance.SolvedOnce();
    if (!whole.runs || whole.exceeding) continue;
    const int64_t enough = (whole.cost - instance.problem.total_cost) * 3;
    const LoopOutcome ended = instance.SolvedOnce(enough);
    REQUIRE(ended.runs.has_value());
    CHECK(PeakOf(instance.problem, *ended.runs) <= instance.budget);
    CHECK(ended.cost >= whole.cost);
    CHECK(ended.cost - instance.problem.total_cost <= enough);
    // Otherwise, the only program was solved to its end.
    if (ended.cost > whole.cost) ++ended_early;
  }
  CHECK(ended_early > 0);
}

TEST_CASE("moments: a plan that fits is kept although better ones of the same program do not fit") {
  if (!HasMipSolver()) return;
  int kept = 0;
  for (uint64_t seed = 1; seed <= 80; ++seed) {
    CAPTURE(seed);
    const LargerInstance instance(seed, 40, 90);
    const LoopOutcome loop = instance.SolvedOnce();
    if (!loop.exceeding || !loop.runs) continue;
    CHECK(PeakOf(instance.problem, *loop.runs) <= instance.budget);
    // The excess is large, so that solving with less memory is not tried.
    if (PeakOf(instance.problem, *loop.exceeding) > instance.budget * 105 / 100) ++kept;
  }
  CHECK(kept > 0);
}

TEST_CASE("moments: if the rounds do not suffice, less memory makes a plan fit that nearly fits") {
  if (!HasMipSolver()) return;
  LoopLimits limits = kAmple;
  limits.rounds = 1;
  int made_to_fit = 0;
  // There are as many with sanitizers, since few of the plans are made to fit.
  for (uint64_t seed = 1; seed <= 1500; ++seed) {
    CAPTURE(seed);
    const RandomInstance instance(seed, kMomentPercentChains);
    const LoopOutcome loop = SolvedLoop(instance, limits);
    Simulator simulator(instance.graph);
    if (loop.exceeding) {
      CHECK(simulator.Run(*loop.exceeding)->peak.count() > instance.budget);
    }
    if (!loop.runs) continue;
    const Simulation simulation = simulator.Run(*loop.runs).value();
    CHECK(simulation.peak.count() <= instance.budget);
    CHECK(simulation.cost.count() - instance.OnceCost() >= loop.lower_bound);
    if (loop.exceeding) ++made_to_fit;
  }
  CHECK(made_to_fit > 0);
}

TEST_CASE("best: searches that share a problem find what each finds alone") {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    CAPTURE(seed);
    const RandomInstance instance(seed, kMomentPercentChains);
    BestProblem shared(instance.graph);
    BestOptions options;
    options.work = kQuickWork;
    options.work.moves = 500;
    for (const int percent : {130, 100, 80}) {
      CAPTURE(percent);
      options.budget = instance.budget * percent / 100;
      const BestOutcome alone = SolveBest(instance.graph, options).value();
      const BestOutcome together = SolveBest(&shared, options).value();
      CHECK(together.runs == alone.runs);
      CHECK(together.lower_bound == alone.lower_bound);
      CHECK(together.least_peak == alone.least_peak);
    }
  }
}

TEST_CASE("best: a search that continues another one finds and proves no less") {
  int newly_proven = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    CAPTURE(seed);
    const RandomInstance instance(seed, kMomentPercentChains);
    BestOptions options;
    options.budget = instance.budget;
    options.work = {0, 0, 0, 0, {1, 0, 1, 0, 0, 0, 0}, 0};
    options.is_order_free = instance.budget % 2 == 0;
    const BestOutcome before = SolveBest(instance.graph, options).value();
    options.work = kBriefWork;
    options.before = &before;
    const BestOutcome outcome = SolveBest(instance.graph, options).value();
    CHECK(outcome.runs.has_value() >= before.runs.has_value());
    CHECK(outcome.any_order_bound >= before.any_order_bound);
    CHECK(outcome.least_peak.bytes >= before.least_peak.bytes);
    if (before.is_optimal) CHECK(outcome.is_optimal);
    if (before.runs) CHECK(outcome.overhead <= before.overhead);
    if (outcome.is_optimal && !before.is_optimal) ++newly_proven;
  }
  CHECK((newly_proven > 0 || !HasMipSolver()));
}

TEST_CASE("best: in the own order its overhead is between its bound and that of every start") {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    CAPTURE(seed);
    const RandomInstance instance(seed, kMomentPercentChains);
    BestOptions options;
    options.budget = instance.budget;
    options.work = kQuickWork;
    options.work.moves = 2'000;
    options.is_order_free = false;
    const BestOutcome outcome = SolveBest(instance.graph, options).value();
    const std::optional<int64_t> best =
        ExhaustiveMinCost(instance.problem, instance.order, instance.budget);
    if (outcome.is_infeasible) CHECK_FALSE(best.has_value());
    if (!outcome.runs) continue;
    REQUIRE(best.has_value());
    // The graph's cost includes operations that no result needs, which the exhaustive search leaves
    // out.
    const int64_t least = *best - instance.problem.total_cost;
    CHECK(outcome.overhead >= least);
    if (outcome.is_optimal) CHECK(outcome.overhead == std::max(least, outcome.lower_bound));
  }
}

TEST_CASE("step view: the top is in the highest stretch above the budget that has one") {
  StepView view;
  view.bytes = {5, 11, 12, 9, 15, 20, 14, 10, 13};
  const auto top_of = [&](int64_t budget, const std::function<bool(size_t)>& may_take) {
    return TopAbove(view, budget, may_take);
  };
  const auto all = [](size_t) { return true; };
  CHECK(top_of(10, all) == 5);
  CHECK_FALSE(top_of(20, all).has_value());
  // It takes the next highest step of the same stretch, and no step of another one.
  CHECK(top_of(10, [](size_t step) { return step != 5; }) == 4);
  // A stretch without such a step does not count; the one after it does, up to its last step.
  CHECK(top_of(10, [](size_t step) { return step < 4 || step > 6; }) == 8);
  CHECK(top_of(10, [](size_t step) { return step < 4; }) == 2);
  CHECK_FALSE(
      top_of(10, [](size_t step) { return step == 0 || step == 3 || step == 7; }).has_value());
}

}  // namespace ckplan
