// Compares plans that obey constraints with exhaustive search: on small random training steps, with
// operations that run once and values that must be recomputed.
#include <doctest/doctest.h>

#include <optional>
#include <utility>

#include "lib/base/rng.h"
#include "lib/planning/algorithms/best/best.h"
#include "lib/planning/algorithms/best/certificates.h"
#include "lib/planning/algorithms/best/flat_simulation.h"
#include "lib/problem/runs/run_rules.h"
#include "lib/problem/schedule/simulate.h"
#include "lib/testing/best/brute_force.h"
#include "lib/testing/instances.h"

namespace ckplan {
namespace {

constexpr uint64_t kSeeds = Instances(uint64_t{2000});

constexpr BestWork kSmallWork = {4'000'000, 4'000'000, 12, 20'000, kQuickCurve, 4};

// The second half of the operations is the backward pass.
JointGraph WithPhases(const JointGraph& graph, Rng* rng, int percent_once) {
  JointGraphParts parts = PartsOf(graph);
  const auto count = static_cast<int32_t>(parts.ops.size());
  for (const OpId id : parts.ops.ids()) {
    Operation& op = parts.ops[id];
    op.phase = id.index() < (count + 1) / 2 ? Phase::kForward : Phase::kBackward;
    op.may_repeat = !rng->Chance(percent_once);
  }
  return JointGraph::Create(std::move(parts)).value();
}

JointGraph Draw(Rng* rng) {
  const bool is_chain = rng->Chance(60);
  return WithPhases(is_chain ? ChainJointGraph(*rng, static_cast<int>(rng->Between(2, 4)))
                             : RandomSmallGraph(*rng, static_cast<int>(rng->Between(3, 8))),
                    rng, 20);
}

struct Instance {
  explicit Instance(uint64_t seed)
      : rng(seed), graph(Draw(&rng)), is_recomputed(graph.ops().size()) {
    for (const OpId id : graph.ops().ids()) {
      const Operation& op = graph.op(id);
      is_recomputed[id] = op.phase == Phase::kForward && op.may_repeat && rng.Chance(40);
    }
    problem.emplace(graph, is_recomputed);
    const RunProblem& flat = problem->flat();
    rules = RulesOf(graph, flat);
    rules.is_recomputed.assign(is_recomputed.begin(), is_recomputed.end());
    order = RequiredOwnOrder(flat);
    const int64_t peak = PeakOf(flat, ConstrainedTo(rules, order));
    budget = rng.Between(peak / 2, peak + 2);
  }

  Rng rng;
  JointGraph graph;
  IdVector<OpId, bool> is_recomputed;
  std::optional<BestProblem> problem;
  RunRules rules;
  Runs order;
  int64_t budget = 0;
};

struct Tally {
  int feasible = 0;
  int found = 0;
  int optimal = 0;
  int proven = 0;
};

void Judge(Instance* instance, bool is_order_free, Tally* tally) {
  const RunProblem& flat = instance->problem->flat();
  BestOptions options;
  options.budget = instance->budget;
  options.work = kSmallWork;
  options.is_order_free = is_order_free;
  const BestOutcome best = SolveBest(&*instance->problem, options).value();
  const std::optional<int64_t> least =
      is_order_free ? ExhaustiveMinCost(flat, instance->budget, &instance->rules)
                    : ExhaustiveMinCost(flat, instance->order, instance->budget, &instance->rules);
  if (best.is_infeasible) CHECK_FALSE(least.has_value());
  if (!least) {
    CHECK_FALSE(best.runs.has_value());
    return;
  }
  ++tally->feasible;
  const int64_t overhead = *least - flat.total_cost;
  // Bounds are proven for plans in any order, or for the order that was searched.
  const std::optional<int64_t> least_in_any_order =
      ExhaustiveMinCost(flat, instance->budget, &instance->rules);
  CHECK(best.any_order_bound <= *least_in_any_order - flat.total_cost);
  if (!is_order_free) CHECK(best.lower_bound <= overhead);
  if (!best.runs) return;
  ++tally->found;
  CHECK(Satisfies(instance->rules, *best.runs));
  const Simulation simulation = Simulator(instance->graph).Run(*best.runs).value();
  CHECK(simulation.peak.count() <= instance->budget);
  CHECK(simulation.cost.count() - flat.total_cost == best.overhead);
  CHECK(best.overhead >= overhead);
  tally->optimal += best.overhead == overhead ? 1 : 0;
  if (best.is_optimal && !is_order_free) {
    ++tally->proven;
    CHECK(best.overhead == overhead);
  }
}

TEST_CASE("constrained: plans in the own order obey, bounds hold, and most plans are the best") {
  Tally tally;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    CAPTURE(seed);
    Instance instance(seed);
    Judge(&instance, /*is_order_free=*/false, &tally);
  }
  MESSAGE(tally.feasible << " feasible, " << tally.found << " found, " << tally.optimal
                         << " optimal, " << tally.proven << " proven");
  CHECK(tally.feasible > static_cast<int>(kSeeds / 4));
  CHECK(tally.found * 100 >= tally.feasible * 97);
  CHECK(tally.optimal * 100 >= tally.feasible * 95);
  CHECK(tally.proven * 100 >= tally.feasible * 40);
}

TEST_CASE("constrained: plans in any order obey, and bounds hold") {
  Tally tally;
  for (uint64_t seed = kSeeds; seed < 2 * kSeeds; ++seed) {
    CAPTURE(seed);
    Instance instance(seed);
    Judge(&instance, /*is_order_free=*/true, &tally);
  }
  MESSAGE(tally.feasible << " feasible, " << tally.found << " found, " << tally.optimal
                         << " optimal");
  CHECK(tally.found * 100 >= tally.feasible * 97);
  CHECK(tally.optimal * 100 >= tally.feasible * 90);
}

}  // namespace
}  // namespace ckplan
