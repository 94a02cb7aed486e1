// Tests rotor beyond the suite that all solvers share.
#include "lib/planning/algorithms/rotor/rotor.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/rng.h"
#include "lib/planning/planner/planner.h"
#include "lib/testing/graph_text.h"

namespace ckplan {
namespace {

constexpr int64_t kNever = int64_t{1} << 60;

// The recursion as written, without a table.
int64_t MinTime(const std::vector<Stage>& stages, size_t s, size_t t, int64_t memory) {
  if (memory < 0) return kNever;
  const Stage& first = stages[s];
  const int64_t gradient = stages[t].gradient;
  int64_t best = kNever;
  if (memory >= std::max(gradient + first.forward_all, first.backward)) {
    best = first.time;
    if (s < t) best += MinTime(stages, s + 1, t, memory - first.saved);
  }
  int64_t time = 0;
  for (size_t k = s + 1; k <= t; ++k) {
    const int64_t input = k - 1 == s ? 0 : stages[k - 2].output;
    if (memory < gradient + input + stages[k - 1].forward) break;
    time += stages[k - 1].time;
    best = std::min(best, time + MinTime(stages, k, t, memory - stages[k - 1].output) +
                              MinTime(stages, s, k - 1, memory));
  }
  return std::min(best, kNever);
}

std::vector<Stage> RandomStages(Rng& rng) {
  std::vector<Stage> stages(static_cast<size_t>(rng.Between(1, 6)));
  for (Stage& stage : stages) {
    stage.time = rng.Between(0, 9);
    stage.output = rng.Between(0, 6);
    stage.saved = stage.output + rng.Between(0, 6);
    stage.gradient = &stage == &stages.back() ? 0 : stage.output;
    stage.forward = stage.output + rng.Between(0, 4);
    stage.forward_all = stage.saved + rng.Between(0, 4);
    stage.backward = stage.saved + stage.gradient + rng.Between(0, 8);
  }
  return stages;
}

TensorGraph RandomChain(uint64_t seed, int max_length) {
  Rng rng(seed);
  std::vector<TextVertex> vertices;
  std::vector<std::pair<int32_t, int32_t>> edges;
  const auto length = static_cast<int32_t>(rng.Between(1, max_length));
  for (int32_t i = 0; i < length; ++i) {
    vertices.push_back({std::string("n").append(std::to_string(i)), Bytes(rng.Between(1, 20)),
                        Cost(rng.Between(1, 9))});
    if (i > 0) edges.emplace_back(i - 1, i);
  }
  return GraphFromVertices("chain", vertices, edges);
}

Plan PlanUnder(const TensorGraph& graph, const Budget& paper_budget) {
  PlanRequest request;
  request.algorithm = "rotor";
  request.paper_budget = paper_budget;
  return *MakePlan(graph, request, {});
}

}  // namespace

TEST_CASE("rotor: the table equals the paper's recursion, at every amount of memory") {
  int feasible = 0;
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    const std::vector<Stage> stages = RandomStages(rng);
    const int64_t least = MinMemory(stages);
    for (int64_t memory = std::max<int64_t>(1, least - 2); memory <= least + 30; memory += 3) {
      CAPTURE(memory);
      const PersistentProgram program(stages, memory);
      const int64_t expected = MinTime(stages, 0, stages.size() - 1, memory);
      CHECK(program.is_feasible() == (expected < kNever));
      CHECK(program.is_feasible() == (memory >= least));
      if (!program.is_feasible()) continue;
      ++feasible;
      CHECK(program.time() == expected);
      CHECK(program.PeakOf(stages) <= memory);
      int64_t time = 0;
      for (const StageRun& run : program.Runs()) {
        if (!run.is_backward) time += stages[run.stage].time;
      }
      CHECK(time == expected);
    }
    const PersistentProgram all(stages, std::max<int64_t>(1, MemoryToSaveAll(stages)));
    CHECK(all.Runs().size() == 2 * stages.size());
  }
  CHECK(feasible > 2000);
}

// Every backward reads its input and its output, so no run is removed, and nothing that the paper
// counts is absent.
TEST_CASE("rotor: on chains the simulator finds the paper's overhead, and no more memory") {
  int repeated = 0;
  int equal = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    CAPTURE(seed);
    const TensorGraph graph = RandomChain(seed, 12);
    const Plan least = PlanUnder(graph, {Budget::Kind::kMin, Bytes(0), 0});
    for (const int64_t more : {0, 5, 20, 60}) {
      const Bytes budget = *least.figures.paper.budget + Bytes(more);
      const Plan plan = PlanUnder(graph, {Budget::Kind::kBytes, budget, 0});
      CHECK(plan.figures.is_optimal);
      CHECK(plan.figures.overhead == plan.figures.paper.overhead);
      CHECK(plan.figures.peak <= plan.figures.paper.peak);
      CHECK(plan.figures.paper.peak <= budget);
      equal += plan.figures.peak == plan.figures.paper.peak ? 1 : 0;
      const bool runs_thrice =
          std::any_of(plan.decisions.begin(), plan.decisions.end(),
                      [](const auto& decision) { return decision.recompute_count > 1; });
      repeated += runs_thrice ? 1 : 0;
    }
  }
  CHECK(repeated > 50);
  CHECK(equal > 600);
}

// Eight layers of 10 bytes each. The backward of a layer needs its output and two gradients in
// addition to its input. The least memory adds one result, the checkpoint from which every layer is
// recomputed. Keeping all takes the eight results and two gradients.
TEST_CASE("rotor: a chain of eight equal layers by hand") {
  const TensorGraph graph =
      GraphFromText("a:10 -> b:10 -> c:10 -> d:10 -> e:10 -> f:10 -> g:10 -> h:10");
  const Plan least = PlanUnder(graph, {Budget::Kind::kMin, Bytes(0), 0});
  CHECK(*least.figures.paper.budget == Bytes(40));
  CHECK(least.figures.peak == Bytes(40));
  const Plan all = PlanUnder(graph, {Budget::Kind::kBytes, Bytes(100), 0});
  CHECK(all.figures.overhead == Cost(0));
  CHECK(all.figures.peak == Bytes(100));
}

// Parallel branches contain no splitting vertex, so they form one stage, which saves all or
// nothing.
TEST_CASE("rotor: not optimal if the graph is not a chain") {
  const TensorGraph graph =
      GraphFromText("a:1 -> b:9 -> d:9 -> f:1 -> g:1; a -> c:9 -> e:9 -> f; b -> c");
  PlanRequest request;
  request.algorithm = "rotor";
  request.budget.kind = Budget::Kind::kMin;
  const Plan rotor = *MakePlan(graph, request, {});
  request.algorithm = "best";
  CHECK(MakePlan(graph, request, {})->figures.peak < rotor.figures.peak);
}

TEST_CASE("rotor: large sizes are rounded up to slots, and chains of many stages are merged") {
  std::vector<TextVertex> vertices;
  std::vector<std::pair<int32_t, int32_t>> edges;
  for (int32_t i = 0; i < 300; ++i) {
    vertices.push_back({std::string("n").append(std::to_string(i)), Bytes(1'000'003), Cost(1)});
    if (i > 0) edges.emplace_back(i - 1, i);
  }
  const TensorGraph graph = GraphFromVertices("chain", vertices, edges);
  CHECK(FindStages(graph, VertexGraph(graph)).stages.size() == kMaxChainStages);
  const Plan least = PlanUnder(graph, {Budget::Kind::kMin, Bytes(0), 0});
  CHECK(least.figures.peak < Bytes(30'000'000));
  CHECK(least.figures.peak <= *least.figures.paper.budget);
}

}  // namespace ckplan
