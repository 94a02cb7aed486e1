#include "lib/planning/algorithms/best/offload_search.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <utility>

#include "lib/base/stop.h"
#include "lib/planning/algorithms/best/best.h"
#include "lib/planning/algorithms/best/certificates.h"
#include "lib/planning/algorithms/best/flat_simulation.h"
#include "lib/planning/algorithms/best/offload_best.h"
#include "lib/planning/algorithms/best/offload_network.h"
#include "lib/problem/schedule/simulate.h"
#include "lib/problem/schedule/step_table.h"
#include "lib/testing/best/brute_force.h"
#include "lib/testing/best/brute_force_offload.h"

namespace ckplan {
namespace {

constexpr size_t kMaxStates = 10'000;
constexpr int kTightLayers = 60;
constexpr OffloadEffort kSmallEffort = {{500, 5'000, 3, 2}, 100, 0, 3};

// A small graph that does not fit as it is, and a link.
struct SmallOffload {
  explicit SmallOffload(uint64_t seed) : rng(seed), graph(Draw()), problem(graph) {
    while (LargestNeed() >= PeakOf(problem, RequiredOwnOrder(problem))) {
      graph = Draw();
      problem = RunProblem(graph);
    }
    order = RequiredOwnOrder(problem);
    limits.budget = rng.Between(LargestNeed(), PeakOf(problem, order) - 1);
    const auto rate = [&] { return int64_t{250'000'000} << rng.Between(0, 5); };
    limits.link.out_bytes_per_second = rate();
    limits.link.in_bytes_per_second = rate();
    if (rng.Chance(30)) limits.link.duplex = Duplex::kHalf;
    const IdVector<ValueId, bool> movable = MovableValues(graph);
    limits.may_move.assign(movable.begin(), movable.end());
  }

  JointGraph Draw() {
    return rng.Chance(50) ? ChainJointGraph(rng, static_cast<int>(rng.Between(2, 3)))
                          : RandomSmallGraph(rng, static_cast<int>(rng.Between(3, 6)));
  }

  int64_t LargestNeed() const {
    Bytes most(0);
    for (const OpId op : RequiredOwnOrder(problem)) {
      most = std::max(most, TrainingStep(graph).OwnNeedOf(Step::Run(op)));
    }
    return most.count();
  }

  OffloadOptimum Optimum() const {
    const CopyTimes times = CopyTimesOf(problem, limits.link, limits.may_move);
    return ExhaustiveOffload(problem, times, order, limits.budget, kMaxStates);
  }

  int64_t IdleCost() const { return CostOf(problem, order) - problem.total_cost; }
  OffloadOutcome Solve(const std::vector<Schedule>& starts = {}) const {
    return SolveWithOffload(graph, limits, kSmallEffort, starts).value();
  }

  Rng rng;
  JointGraph graph;
  RunProblem problem;
  Runs order;
  OffloadLimits limits;
};

// A chain of many operations with hardly more memory than one of them needs.
struct TightOffload {
  explicit TightOffload(uint64_t seed)
      : rng(seed), graph(ChainJointGraph(rng, kTightLayers)), problem(graph) {
    limits.budget = LargestNeed(graph) * 12 / 10;
    limits.link.out_bytes_per_second = limits.link.in_bytes_per_second = 100'000'000;
    const IdVector<ValueId, bool> movable = MovableValues(graph);
    limits.may_move.assign(movable.begin(), movable.end());
  }

  RunsAndLoads OwnOrder() const {
    RunsAndLoads steps;
    for (const OpId op : RequiredOwnOrder(problem)) steps.push_back(op.index());
    return steps;
  }

  OffloadAnnealOutcome Anneal(const RunsAndLoads& start,
                              const OffloadAnnealOptions& options) const {
    return AnnealOffload(problem, limits, start, options);
  }

  Rng rng;
  JointGraph graph;
  RunProblem problem;
  OffloadLimits limits;
};

// Adds an operation and the value that it makes.
ValueId AddOp(JointGraphParts* parts, int64_t bytes, std::vector<ValueId> reads) {
  Value value;
  value.file_id = static_cast<int64_t>(parts->values.size());
  value.bytes = Bytes(bytes);
  Operation op;
  op.file_id = static_cast<int64_t>(parts->ops.size());
  op.cost = Cost(1000);
  op.reads = std::move(reads);
  const ValueId made = parts->values.push_back(std::move(value));
  op.writes = {made};
  parts->ops.push_back(std::move(op));
  return made;
}

// Returns a graph in which `kept` has to be away while others need all of 24 bytes, and in which an
// operation fits only because it takes over memory by way of an alias.
//
//   kept:8    a:16 -> view of a -> b:16, over the view -> c:8 -> end, reads c and kept
JointGraph GraphWithTakeover() {
  JointGraphParts parts;
  const ValueId kept = AddOp(&parts, 8, {});
  const ValueId a = AddOp(&parts, 16, {});
  const ValueId view = AddOp(&parts, 16, {a});
  parts.values[view].alias_of = a;
  const ValueId b = AddOp(&parts, 16, {view});
  parts.ops[OpId(3)].in_place = {{b, view}};
  const ValueId c = AddOp(&parts, 8, {b});
  parts.results = {AddOp(&parts, 0, {c, kept})};
  return JointGraph::Create(std::move(parts)).value();
}

Simulation Measure(const SmallOffload& small, const Schedule& schedule) {
  return Simulator(TrainingStep(small.graph).WithLink(&small.limits.link)).Run(schedule).value();
}

}  // namespace

TEST_CASE("offload: the search finds the optimum of most small graphs, and never less") {
  int feasible = 0;
  int optimal = 0;
  int moving = 0;
  for (uint64_t seed = 0; seed < 120; ++seed) {
    CAPTURE(seed);
    const SmallOffload small(seed);
    if (small.problem.value_count > 12) continue;
    const OffloadOptimum optimum = small.Optimum();
    if (!optimum.is_known) continue;
    const OffloadOutcome found = small.Solve();
    if (!optimum.is_feasible) {
      CHECK_FALSE(found.best);
      continue;
    }
    ++feasible;
    if (!found.best) continue;
    const int64_t least = small.IdleCost() + optimum.added;
    CHECK(found.best->overhead >= least);
    CHECK(found.lower_bound <= least);
    optimal += found.best->overhead == least ? 1 : 0;
    moving += HasTransfers(found.best->schedule) ? 1 : 0;
    const Simulation measured = Measure(small, found.best->schedule);
    CHECK(measured.peak.count() == found.best->peak);
    CHECK(measured.peak.count() <= small.limits.budget);
    CHECK(measured.overhead.count() == found.best->overhead);
  }
  MESSAGE(optimal, " of ", feasible, " optimal, ", moving, " with copies");
  CHECK(feasible > 100);
  CHECK(moving > 30);
  CHECK(optimal * 100 > feasible * 85);
}

TEST_CASE("offload: no plan is worse than the start, and the same request gives the same plan") {
  for (uint64_t seed = 1000; seed < 1060; ++seed) {
    CAPTURE(seed);
    const SmallOffload small(seed);
    BestOptions options;
    options.budget = small.limits.budget;
    options.work = kBriefWork;
    const BestOutcome without = SolveBest(small.graph, options).value();
    if (!without.runs) continue;
    const std::vector<Schedule> starts = {ScheduleOfRuns(*without.runs)};
    const OffloadOutcome found = small.Solve(starts);
    REQUIRE(found.best);
    CHECK(found.best->overhead <= without.overhead);
    CHECK(small.Solve(starts).best->schedule == found.best->schedule);
    // A search that is stopped at once returns the start.
    std::stop_source stop;
    stop.request_stop();
    const StopScope scope(stop.get_token());
    const OffloadOutcome stopped = small.Solve(starts);
    REQUIRE(stopped.best);
    CHECK(stopped.best->overhead <= without.overhead);
  }
}

TEST_CASE("offload: a search after another gives no less than that one, even without any work") {
  const OffloadEffort none = {{0, 0, 1, 0}, 0, 0, 1};
  int worse = 0;
  for (uint64_t seed = 5000; seed < 5120; ++seed) {
    CAPTURE(seed);
    const SmallOffload small(seed);
    const OffloadOutcome before = small.Solve();
    const auto again = [&](const OffloadOutcome* known) {
      return SolveWithOffload(small.graph, small.limits, none, {}, known).value();
    };
    const OffloadOutcome after = again(&before);
    CHECK(after.lower_bound == before.lower_bound);
    CHECK(after.least_peak == before.least_peak);
    CHECK(after.is_infeasible == before.is_infeasible);
    CHECK(after.is_optimal == before.is_optimal);
    REQUIRE(after.best.has_value() == before.best.has_value());
    if (!before.best) continue;
    CHECK(after.best->overhead == before.best->overhead);
    const OffloadOutcome alone = again(nullptr);
    worse += !alone.best || alone.best->overhead > before.best->overhead ? 1 : 0;
  }
  CHECK(worse > 20);
}

TEST_CASE("offload: chains that go above a tight budget come back to it with better plans") {
  int better = 0;
  int worse = 0;
  for (uint64_t seed = 4000; seed < 4030; ++seed) {
    CAPTURE(seed);
    const TightOffload tight(seed);
    OffloadAnnealOptions options;
    options.work = 100'000;
    options.start_temperature = 0.05;
    const OffloadAnnealOutcome start = tight.Anneal(tight.OwnOrder(), options);
    if (!start.fits) continue;
    options.work = 1'000'000;
    const OffloadAnnealOutcome one_way = tight.Anneal(start.steps, options);
    options.follows_budget = true;
    const OffloadAnnealOutcome both_ways = tight.Anneal(start.steps, options);
    REQUIRE(both_ways.fits);
    CHECK(both_ways.time <= start.time);
    better += both_ways.time < one_way.time ? 1 : 0;
    worse += both_ways.time > one_way.time ? 1 : 0;
  }
  MESSAGE(better, " better, ", worse, " worse");
  CHECK(better > 2 * worse);
}

TEST_CASE("offload: a budget that needs memory taken over by way of an alias is searched, too") {
  const JointGraph graph = GraphWithTakeover();
  REQUIRE(LargestNeed(graph) == 24);
  OffloadLimits limits;
  limits.budget = 24;
  limits.link.out_bytes_per_second = limits.link.in_bytes_per_second = 1'000'000'000;
  const IdVector<ValueId, bool> movable = MovableValues(graph);
  limits.may_move.assign(movable.begin(), movable.end());
  const OffloadOutcome found = SolveWithOffload(graph, limits, kSmallEffort, {}).value();
  REQUIRE(found.best);
  CHECK(HasTransfers(found.best->schedule));
  CHECK(found.best->peak == 24);
  CHECK(found.best->overhead == 8);  // The last operation waits for the copy back.
}

TEST_CASE("offload: plans keep to the memory of the host") {
  int limited = 0;
  for (uint64_t seed = 2000; seed < 2080; ++seed) {
    CAPTURE(seed);
    SmallOffload small(seed);
    const OffloadOutcome free = small.Solve();
    if (!free.best) continue;
    const int64_t most = Measure(small, free.best->schedule).host_peak.count();
    if (most == 0) continue;
    small.limits.host_budget = most / 2;
    const OffloadOutcome found = small.Solve();
    if (!found.best) continue;
    ++limited;
    CHECK(Measure(small, found.best->schedule).host_peak.count() <= most / 2);
    CHECK(found.best->overhead >= free.best->overhead);
  }
  CHECK(limited > 10);
}

TEST_CASE("offload: values that may not move do not") {
  for (uint64_t seed = 3000; seed < 3030; ++seed) {
    CAPTURE(seed);
    SmallOffload small(seed);
    small.limits.may_move.assign(small.limits.may_move.size(), false);
    const OffloadOutcome found = small.Solve();
    if (found.best) CHECK_FALSE(HasTransfers(found.best->schedule));
  }
}

}  // namespace ckplan
