#include "lib/planning/planner/module_plan.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "lib/base/rng.h"
#include "lib/planning/plan/assemble.h"
#include "lib/problem/schedule/lower.h"
#include "lib/problem/schedule/simulate.h"
#include "lib/testing/graph_text.h"
#include "lib/testing/random_graph.h"

namespace ckplan {
namespace {

// The plan that keeps the results of these nodes.
Plan PlanOf(const TensorGraph& graph, const IdVector<NodeId, bool>& is_kept) {
  const Schedule schedule = LowerStrategy(graph, KeptSet{is_kept});
  return AssemblePlan(graph, schedule, IdVector<NodeId, int32_t>(graph.nodes().size(), 0));
}

Plan KeepAllPlan(const TensorGraph& graph) {
  return PlanOf(graph, IdVector<NodeId, bool>(graph.nodes().size(), true));
}

// A model that calls `blocks` modules of class Block one after another. The nodes are divided among
// them as evenly as possible.
ModuleCalls Blocks(const TensorGraph& graph, int32_t blocks) {
  ModuleCalls modules;
  modules.calls = {{"", "Net", -1}};
  for (int32_t i = 0; i < blocks; ++i) modules.calls.push_back({std::to_string(i), "Block", 0});
  const auto count = static_cast<int32_t>(graph.nodes().size());
  for (int32_t i = 0; i < count; ++i) modules.call_of.push_back(1 + i * blocks / count);
  return modules;
}

// The figures that the search minimizes: the part of the peak above the budget, in hundredths of
// the budget, rounded up; the overhead; and the peak.
using Figures = std::tuple<int64_t, Cost, Bytes>;

Figures FiguresOf(Bytes peak, Cost overhead, Bytes budget) {
  const int64_t hundredth = std::max(budget.count() / 100, int64_t{1});
  const int64_t above = std::max(peak - budget, Bytes(0)).count();
  return {(above + hundredth - 1) / hundredth, overhead, peak};
}

// Returns the figures of wrapping exactly the blocks of the mask. Its highest bit stands for the
// whole model.
Figures FiguresOf(const TensorGraph& graph, const ModuleCalls& modules, unsigned mask,
                  Bytes budget) {
  IdVector<NodeId, int32_t> regions(graph.nodes().size(), -1);
  for (const NodeId node : graph.nodes().ids()) {
    const int32_t block = modules.call_of[node] - 1;
    if ((mask >> block & 1) != 0) regions[node] = block;
    if (mask >> (modules.calls.size() - 1) != 0) regions[node] = 0;
  }
  const Simulation found = Simulator(graph).Run(LowerCheckpoints(graph, regions)).value();
  return FiguresOf(found.peak, found.overhead, budget);
}

}  // namespace

TEST_CASE("module plan: a plan that keeps all needs no module") {
  const TensorGraph graph = GraphFromText("a:4 -> b:4 -> c:4 -> d:4");
  const ModulePlan found = FindModulePlan(graph, Blocks(graph, 2), KeepAllPlan(graph)).value();
  CHECK(found.modules.empty());
  CHECK(found.fits());
  CHECK(found.peak == KeepAllPeak(graph));
  CHECK(found.overhead == Cost(0));
}

TEST_CASE("module plan: a block is wrapped where the plan recomputes its inside") {
  //  block 0: a b c   block 1: d e f
  const TensorGraph graph = GraphFromText("a:8@1 -> b:8@1 -> c:1@1 -> d:8@1 -> e:8@1 -> f:1@1");
  IdVector<NodeId, bool> is_kept(graph.nodes().size(), true);
  is_kept[NodeId(0)] = is_kept[NodeId(1)] = false;
  const Plan plan = PlanOf(graph, is_kept);
  REQUIRE(plan.figures.peak < KeepAllPeak(graph));
  const ModulePlan found = FindModulePlan(graph, Blocks(graph, 2), plan).value();
  REQUIRE(found.modules.size() == 1);
  CHECK(found.modules[0].path == "0");
  CHECK(found.modules[0].class_name == "Block");
  CHECK(found.modules[0].call_count == 1);
  CHECK(found.modules[0].node_count == 3);
  // The region runs a, b and c again, although the backward of d has already read the first c.
  CHECK(found.modules[0].recomputed == Bytes(17));
  CHECK(found.modules[0].overhead == Cost(3));
  CHECK(found.overhead == Cost(3));
  CHECK(found.budget == plan.figures.peak);
}

TEST_CASE("module plan: the budget of the plan is kept, not its peak") {
  const TensorGraph graph = GraphFromText("a:8 -> b:8 -> c:1 -> d:8 -> e:8 -> f:1");
  Plan plan = PlanOf(graph, IdVector<NodeId, bool>(graph.nodes().size(), false));
  plan.request.budget = Budget::Of(KeepAllPeak(graph));
  const ModulePlan found = FindModulePlan(graph, Blocks(graph, 2), plan).value();
  CHECK(found.budget == KeepAllPeak(graph));
  CHECK(found.modules.empty());
}

TEST_CASE("module plan: a module called twice is one row, and is wrapped in both calls") {
  const TensorGraph graph =
      GraphFromText("a:8@1 -> b:8@1 -> c:1@1 -> d:8@1 -> e:8@1 -> f:1@1 -> g:9@1 -> h:9@1");
  ModuleCalls modules;
  modules.calls = {{"", "Net", -1}, {"shared", "Block", 0}, {"shared", "Block", 0}};
  modules.call_of = IdVector<NodeId, int32_t>(std::vector<int32_t>{1, 1, 1, 2, 2, 2, 0, 0});
  IdVector<NodeId, bool> is_kept(graph.nodes().size(), true);
  for (const int32_t i : {0, 1, 3, 4}) is_kept[NodeId(i)] = false;
  const ModulePlan found = FindModulePlan(graph, modules, PlanOf(graph, is_kept)).value();
  REQUIRE(found.modules.size() == 1);
  CHECK(found.modules[0].path == "shared");
  CHECK(found.modules[0].call_count == 2);
  CHECK(found.modules[0].node_count == 6);
}

TEST_CASE("module plan: a model without modules is refused") {
  const TensorGraph graph = GraphFromText("a:4 -> b:4");
  const Result<ModulePlan> found = FindModulePlan(graph, {}, KeepAllPlan(graph));
  REQUIRE_FALSE(found.ok());
  CHECK(found.error().code == ErrorCode::kUnsupported);
}

TEST_CASE(
    "module plan: near the best of all choices of blocks, and never worse than the simple ones") {
  int best_found = 0;
  constexpr int kGraphs = 60;
  for (uint64_t seed = 0; seed < kGraphs; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    RandomGraphOptions options;
    options.nodes = 24;
    const TensorGraph graph = RandomTensorGraph(rng, options);
    IdVector<NodeId, bool> is_kept(graph.nodes().size());
    for (const NodeId node : graph.nodes().ids()) is_kept[node] = rng.Chance(50);
    const Plan plan = PlanOf(graph, is_kept);
    constexpr int32_t kBlocks = 7;
    const ModuleCalls modules = Blocks(graph, kBlocks);
    const ModulePlan found = FindModulePlan(graph, modules, plan).value();
    const Figures figures = FiguresOf(found.peak, found.overhead, found.budget);
    Figures least = FiguresOf(graph, modules, 0, found.budget);
    CHECK(figures <= least);
    for (unsigned mask = 1; mask <= 1U << kBlocks; ++mask) {
      least = std::min(least, FiguresOf(graph, modules, mask, found.budget));
    }
    CHECK(figures >= least);
    best_found += figures == least ? 1 : 0;
    Cost overhead;
    for (const WrappedModule& module : found.modules) overhead += module.overhead;
    CHECK(overhead == found.overhead);
  }
  CHECK(best_found >= kGraphs * 8 / 10);
}

}  // namespace ckplan
