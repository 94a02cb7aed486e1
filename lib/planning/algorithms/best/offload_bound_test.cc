#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/planning/algorithms/best/certificates.h"
#include "lib/planning/algorithms/best/curve/nested_network.h"
#include "lib/planning/algorithms/best/flat_simulation.h"
#include "lib/planning/algorithms/best/moment_program.h"
#include "lib/planning/algorithms/best/offload_best.h"
#include "lib/planning/algorithms/best/offload_cut.h"
#include "lib/planning/mip/mip.h"
#include "lib/testing/best/brute_force.h"
#include "lib/testing/best/brute_force_offload.h"
#include "lib/testing/best/nested_bound.h"
#include "lib/testing/instances.h"

namespace ckplan {
namespace {

constexpr int64_t kManyCuts = 200;
constexpr int64_t kAmpleWork = 1'000'000'000;
constexpr uint64_t kFirstSeed = 1;

// The number of random graphs: more if CKPLAN_OFFLOAD_GRAPHS says so.
uint64_t GraphCount(uint64_t usual) {
  const char* wanted = std::getenv("CKPLAN_OFFLOAD_GRAPHS");
  return wanted == nullptr ? usual : std::strtoull(wanted, nullptr, 10);
}

// How often a bound equals the least added time, in percent of the graphs for which a plan exists.
struct EqualShare {
  uint64_t feasible = 0;
  uint64_t equal = 0;
  uint64_t above_zero = 0;  // Bounds above zero.

  void Count(int64_t bound, int64_t least) {
    ++feasible;
    if (bound == least) ++equal;
    if (bound > 0) ++above_zero;
  }
  void Print(std::string_view bound) const {
    MESSAGE(fmt::format("{}: {} graphs, equal to the optimum for {:.0f} %", bound, feasible,
                        100.0 * static_cast<double>(equal) / static_cast<double>(feasible)));
  }
};

// The largest cut over all moments.
int64_t LargestCut(const OffloadInstance& instance, const OffloadOptimum& optimum) {
  int64_t most = 0;
  for (size_t moment = 0; moment < instance.order.size(); ++moment) {
    CAPTURE(moment);
    const OffloadCut cut = CutWithOffload(instance.problem, instance.times, instance.order, moment,
                                          instance.budget, kManyCuts);
    if (optimum.is_feasible) CHECK(cut.is_feasible);
    most = std::max(most, cut.added_cost);
  }
  return most;
}

// All windows of these moments, and some reruns.
ChargedSteps ChargeAll(const std::vector<int32_t>& moments, OffloadInstance* instance) {
  const auto size = static_cast<int32_t>(instance->order.size());
  ChargedSteps charged{moments, {}, {}};
  for (const int32_t moment : moments) {
    for (int32_t i = 0; i < moment; ++i) {
      charged.windows.push_back({moment, {true, i}});
      if (instance->rng.Chance(30)) charged.reruns.push_back({moment, instance->order[At(i)]});
    }
    for (int32_t i = moment + 1; i <= size; ++i) charged.windows.push_back({moment, {false, i}});
  }
  return charged;
}

// Returns `count` of the positions, in ascending order.
std::vector<int32_t> DrawMoments(size_t count, OffloadInstance* instance) {
  std::vector<int32_t> moments;
  for (size_t i = 0; i < instance->order.size(); ++i) moments.push_back(static_cast<int32_t>(i));
  while (moments.size() > count) {
    const auto last = static_cast<int64_t>(moments.size()) - 1;
    moments.erase(moments.begin() + instance->rng.Between(0, last));
  }
  return moments;
}

int64_t ProgramBound(const std::vector<int32_t>& moments, bool is_relaxed,
                     const OffloadOptimum& optimum, OffloadInstance* instance) {
  const ChargedSteps charged = ChargeAll(moments, instance);
  ProgramLimits<MomentPlan> limits{kAmpleWork};
  limits.is_relaxed = is_relaxed;
  const MomentOutcome outcome = SolveMoments(instance->problem, instance->order, charged,
                                             instance->budget, limits, &instance->times)
                                    .value();
  if (optimum.is_feasible) CHECK_FALSE(outcome.is_infeasible);
  if (outcome.plan) CHECK(outcome.plan->exceeded.empty());
  if (outcome.plan) CHECK(outcome.is_exact);
  return outcome.lower_bound;
}

// Checks the largest bound over draws of `count` moments, or of all moments if `count` is 0.
void CheckPrograms(size_t count, bool is_relaxed, uint64_t graphs) {
  EqualShare share;
  for (uint64_t seed = kFirstSeed; seed < kFirstSeed + graphs; ++seed) {
    CAPTURE(seed);
    OffloadInstance instance(seed, 6);
    const OffloadOptimum optimum = instance.Optimum();
    if (!optimum.is_known) continue;
    const size_t draws = count == 0 ? 1 : instance.order.size();
    int64_t bound = 0;
    for (size_t draw = 0; draw < draws; ++draw) {
      const std::vector<int32_t> moments =
          count == 1 ? std::vector{static_cast<int32_t>(draw)}
                     : DrawMoments(count == 0 ? instance.order.size() : count, &instance);
      bound = std::max(bound, ProgramBound(moments, is_relaxed, optimum, &instance));
    }
    if (!optimum.is_feasible) continue;
    CHECK(bound <= optimum.added);
    share.Count(bound, optimum.added);
  }
  CHECK(share.above_zero * 2 > share.feasible);
  share.Print(fmt::format("{} moments{}", count == 0 ? "all" : std::to_string(count),
                          is_relaxed ? ", relaxed" : ""));
}

Link LinkOf(int64_t bytes_per_second) { return {"", bytes_per_second, bytes_per_second}; }

// Three layers of 4 bytes and 10 ns, a loss and gradients of 1 byte and 1 ns: layers 0 and 1 are
// read again at positions 4 and 5.
JointGraph ThreeLayers() {
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
  const ValueId a = add({}, 4, 10);
  const ValueId b = add({a}, 4, 10);
  const ValueId c = add({b}, 4, 10);
  ValueId gradient = add({c}, 1, 1);
  gradient = add({gradient, b}, 1, 1);
  gradient = add({gradient, a}, 1, 1);
  parts.results = {gradient};
  return JointGraph::Create(std::move(parts)).value();
}

}  // namespace

TEST_CASE("cut with copies: layers, worked by hand") {
  // While position 3 runs, 4 + 4 + 4 + 1 bytes are in memory. With 12 bytes, layer 0 or 1 must go.
  const JointGraph graph = ThreeLayers();
  const RunProblem problem(graph);
  const Runs order = RequiredOwnOrder(problem);
  std::vector<bool> may_move(6, true);
  may_move[5] = false;  // The result.
  // Layer 0 is copied out in 8 ns while layer 1 runs. Its copy back takes 8 ns as well, begins
  // after position 3, and only position 4 lies between: 7 ns of waiting, or running layer 0 again.
  const CopyTimes slow = CopyTimesOf(problem, LinkOf(500'000'000), may_move);
  CHECK(slow.out[0] == 8);
  const OffloadOptimum optimum = ExhaustiveOffload(problem, slow, order, 12, kMaxOffloadStates);
  REQUIRE(optimum.is_feasible);
  CHECK(optimum.added == 7);
  // In the program, a quarter of a layer suffices. Of this quarter, x is made again in 10 x ns,
  // during which the rest comes back: 8 (1/4 - x) <= 1 + 10 x. So x is 1/18, and 10 x rounded up 1.
  CHECK(CutWithOffload(problem, slow, order, 3, 12, kManyCuts).added_cost == 1);
  CHECK(CutWithOffload(problem, slow, order, 3, 13, kManyCuts).added_cost == 0);
  // With 9 bytes one layer must go: 8 (1 - x) <= 1 + 10 x, and 10 x = 70/18.
  CHECK(CutWithOffload(problem, slow, order, 3, 9, kManyCuts).added_cost == 4);
  // A link of 4 bytes a nanosecond hides the copies of layer 0: 1 ns each.
  const CopyTimes fast = CopyTimesOf(problem, LinkOf(4'000'000'000), may_move);
  CHECK(CutWithOffload(problem, fast, order, 3, 9, kManyCuts).added_cost == 0);
  CHECK(ExhaustiveOffload(problem, fast, order, 12, kMaxOffloadStates).added == 0);
  // Position 3 reads layer 2 and writes 1 byte.
  CHECK_FALSE(CutWithOffload(problem, fast, order, 3, 4, kManyCuts).is_feasible);
  CHECK(CutWithOffload(problem, fast, order, 3, 4, kManyCuts).missing_bytes == 1);
}

TEST_CASE("cut with copies: never above the least added time of any plan of the order") {
  EqualShare share;
  const uint64_t graphs = GraphCount(Instances(uint64_t{400}));
  for (uint64_t seed = kFirstSeed; seed < kFirstSeed + graphs; ++seed) {
    CAPTURE(seed);
    const OffloadInstance instance(seed, 7);
    const OffloadOptimum optimum = instance.Optimum();
    if (!optimum.is_known) continue;
    const int64_t bound = LargestCut(instance, optimum);
    if (!optimum.is_feasible) continue;
    CHECK(bound <= optimum.added);
    share.Count(bound, optimum.added);
  }
  CHECK(share.above_zero * 2 > share.feasible);
  CHECK(share.equal * 4 > share.feasible);
  share.Print("cuts");
}

TEST_CASE("moments with copies: no plan of the order adds less than a program says") {
  if (!HasMipSolver()) return;
  const uint64_t graphs = GraphCount(Instances(uint64_t{80}));
  for (const bool is_relaxed : {false, true}) {
    for (const size_t count : {1U, 2U, 3U, 0U}) CheckPrograms(count, is_relaxed, graphs);
  }
}

TEST_CASE("bound with copies: at least that of the cut, never above the least added time") {
  int higher = 0;
  for (uint64_t seed = kFirstSeed; seed < kFirstSeed + Instances(uint64_t{150}); ++seed) {
    CAPTURE(seed);
    const OffloadInstance instance(seed, 6);
    const OffloadOptimum optimum = instance.Optimum();
    if (!optimum.is_known) continue;
    for (size_t moment = 0; moment < instance.order.size(); ++moment) {
      CAPTURE(moment);
      const OffloadCut cut = CutWithOffload(instance.problem, instance.times, instance.order,
                                            moment, instance.budget, kManyCuts);
      const OffloadBound bound = ProveOffloadBound(instance.problem, instance.times, instance.order,
                                                   moment, instance.budget, {kManyCuts, kAmpleWork})
                                     .value();
      if (optimum.is_feasible) CHECK_FALSE(bound.is_infeasible);
      CHECK(bound.is_infeasible == (bound.least_peak.bytes.count() > instance.budget));
      if (bound.is_infeasible) continue;
      CHECK(bound.lower_bound >= cut.added_cost);
      CHECK(bound.choices.size() >= cut.choices.size());
      if (optimum.is_feasible) CHECK(bound.lower_bound <= optimum.added);
      if (bound.proof == OverheadProof::kMoments) ++higher;
    }
  }
  CHECK((higher > 0 || !HasMipSolver()));
}

TEST_CASE("cut with copies: where nothing may move it bounds as the cut without copies does") {
  for (uint64_t seed = kFirstSeed; seed < kFirstSeed + Instances(uint64_t{300}); ++seed) {
    CAPTURE(seed);
    OffloadInstance instance(seed, 7);
    instance.times.may_move.assign(instance.times.may_move.size(), false);
    for (size_t moment = 0; moment < instance.order.size(); ++moment) {
      CAPTURE(moment);
      const std::vector<int32_t> moments = {static_cast<int32_t>(moment)};
      NestedNetwork network(instance.problem, instance.order, moments);
      const int64_t missing = network.MinBytes(0) - instance.budget;
      const OffloadCut with = CutWithOffload(instance.problem, instance.times, instance.order,
                                             moment, instance.budget, kManyCuts);
      CHECK(with.is_feasible == (missing <= 0));
      if (!with.is_feasible) CHECK(with.missing_bytes == missing);
      if (with.is_feasible) CHECK(with.added_cost == BestBoundOf(&network, instance.budget));
    }
  }
}

TEST_CASE("cut with copies: choices leave room first, and keep or load only what was made") {
  for (uint64_t seed = kFirstSeed; seed < kFirstSeed + Instances(uint64_t{300}); ++seed) {
    CAPTURE(seed);
    const OffloadInstance instance(seed, 7);
    const auto moment = instance.order.size() / 2;
    const auto op = At(instance.order[moment].index());
    const RunProblem& problem = instance.problem;
    const OffloadCut cut =
        CutWithOffload(problem, instance.times, instance.order, moment, instance.budget, kManyCuts);
    if (!cut.is_feasible) continue;
    REQUIRE_FALSE(cut.choices.empty());
    int64_t kept = problem.written_bytes[op] + problem.workspace[op] - problem.in_place_bytes[op];
    for (size_t value = 0; value < problem.bytes.size(); ++value) {
      const bool is_kept = cut.choices[0].kept[value];
      if (is_kept) kept += problem.bytes[value];
      if (cut.choices[0].loaded[value]) {
        CHECK_FALSE(is_kept);
        CHECK(instance.times.may_move[value]);
      }
    }
    CHECK(kept <= instance.budget);
  }
}

TEST_CASE("certificates with copies: no plan has a lower peak") {
  uint64_t reached = 0;
  for (uint64_t seed = kFirstSeed; seed < kFirstSeed + Instances(uint64_t{80}); ++seed) {
    CAPTURE(seed);
    OffloadInstance instance(seed, 5);
    const int64_t bound = MinPeakWithCopies(instance.problem, instance.times.may_move).first;
    CHECK(bound <= FindCertificates(instance.problem).least_peak_any_plan);
    instance.budget = bound - 1;
    const OffloadOptimum below = instance.Optimum();
    if (below.is_known) CHECK_FALSE(below.is_feasible);
    instance.budget = bound;
    if (instance.Optimum().is_feasible) ++reached;
  }
  CHECK(reached > Instances(uint64_t{24}));
}

TEST_CASE("exhaustive search with copies: never worse than without, and its steps are a plan") {
  uint64_t better = 0;
  for (uint64_t seed = kFirstSeed; seed < kFirstSeed + Instances(uint64_t{300}); ++seed) {
    CAPTURE(seed);
    const OffloadInstance instance(seed, 6);
    const OffloadOptimum optimum = instance.Optimum();
    if (!optimum.is_known) continue;
    const std::optional<int64_t> without =
        ExhaustiveMinCost(instance.problem, instance.order, instance.budget);
    if (without) REQUIRE(optimum.is_feasible);
    const int64_t once = CostOf(instance.problem, instance.order);
    if (without) CHECK(optimum.added <= *without - once);
    if (without && optimum.added < *without - once) ++better;
    int64_t runs = -once;
    for (const OffloadStep& step : optimum.steps) {
      if (step.kind == OffloadStep::Kind::kRun) runs += instance.problem.cost[At(step.number)];
    }
    if (optimum.is_feasible) CHECK(runs <= optimum.added);
  }
  CHECK(better > Instances(uint64_t{16}));
}

}  // namespace ckplan
