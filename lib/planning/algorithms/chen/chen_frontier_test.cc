#include "lib/planning/algorithms/chen/chen_frontier.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/rng.h"
#include "lib/planning/planner/planner.h"
#include "lib/testing/graph_text.h"
#include "lib/testing/random_graph.h"

namespace ckplan {
namespace {

Plan PlanByFrontier(const TensorGraph& graph, int64_t segments = 0) {
  PlanRequest request;
  request.algorithm = "chen-frontier";
  if (segments > 0) request.setting = KnobSetting{"segments", segments};
  return *MakePlan(graph, request, {});
}

// Returns the names of the last nodes of all segments but the last one, in the order in which the
// plan runs them.
std::string CutsOf(const TensorGraph& graph, const Plan& plan) {
  std::string cuts;
  for (size_t i = 0; i + 1 < graph.nodes().size(); ++i) {
    const NodeId here = plan.schedule.steps[i].node();
    const NodeId next = plan.schedule.steps[i + 1].node();
    if (plan.decisions[here].segment != plan.decisions[next].segment) {
      cuts += (cuts.empty() ? "" : " ") + graph.node(here).name;
    }
  }
  return cuts;
}

// Two recurrent layers over several time steps; the states a and b are made from u and v.
//
//        u0:40 ▶ a0:10 ──────▶ u1 ▶ a1 ──────▶ ...     The states of both layers go on to the next
//                  └─▶ v0:40 ▶ b0:10   └─▶ v1 ▶ b1     step, so no vertex splits the graph.
//                               └───────────▲
//
// Each step has 100 bytes. After a and after b the frontier is two states (20), within a cell 50.
TensorGraph TwoLayers(int steps, bool is_layer_by_layer) {
  std::vector<TextVertex> vertices;
  std::vector<std::pair<int32_t, int32_t>> edges;
  // Returns the position of u, a, v or b of a step in the list.
  const auto position = [&](int step, int of_step) {
    return is_layer_by_layer ? (of_step / 2) * 2 * steps + 2 * step + of_step % 2
                             : 4 * step + of_step;
  };
  vertices.resize(static_cast<size_t>(4 * steps));
  for (int step = 0; step < steps; ++step) {
    for (int i = 0; i < 4; ++i) {
      vertices[static_cast<size_t>(position(step, i))] = {
          std::string(1, "uavb"[i]) + std::to_string(step), Bytes(i % 2 == 0 ? 40 : 10), Cost(1)};
    }
    for (int i = 0; i < 3; ++i) edges.emplace_back(position(step, i), position(step, i + 1));
    if (step == 0) continue;
    edges.emplace_back(position(step - 1, 1), position(step, 0));
    edges.emplace_back(position(step - 1, 3), position(step, 2));
  }
  return GraphFromVertices("layers", vertices, edges);
}

}  // namespace

TEST_CASE("chen-frontier: an unrolled network is cut between its time steps") {
  const TensorGraph graph = TwoLayers(4, false);
  const Plan halves = PlanByFrontier(graph, 2);
  CHECK(CutsOf(graph, halves) == "b1");
  CHECK(halves.figures.paper.peak == Bytes(20 + 200));
  const Plan steps = PlanByFrontier(graph, 4);
  CHECK(CutsOf(graph, steps) == "b0 b1 b2");
  CHECK(steps.figures.paper.peak == Bytes(3 * 20 + 100));
  CHECK(steps.figures.paper.overhead == Cost(16 - 6));
  CHECK(steps.figures.overhead == Cost(6));  // These are u and v of each step but the last.
  // S = 400 and F = 20; the mean result is 25, and sqrt(400 / 25) = 4.
  CHECK(PlanByFrontier(graph).figures.setting == KnobSetting{"segments", 4});
}

// There are 1,600 bytes, and k = 4. By level the layers run side by side, u0 a0, u1 v0, a1 b0, u2
// v1, a2 b1, ... After b2, at 350 bytes, the frontier is two states, and 3 x 20 + 50 is the
// minimum; b6 and b10 are the same. So x + y = 3 x 20 + 450. In the order of the graph, all 16
// states of the first layer would be kept, since the second layer reads them, and x + y would be
// 170 + 400: cuts after a7, a15 and b7, at the multiples themselves, keep these states and b7.
TEST_CASE("chen-frontier: a loop over time inside one over layers is cut over time as well") {
  const TensorGraph graph = TwoLayers(16, true);
  const Plan plan = PlanByFrontier(graph, 4);
  CHECK(CutsOf(graph, plan) == "b2 b6 b10");
  CHECK(plan.figures.paper.peak == Bytes(60 + 450));
  for (const NodeId id : graph.nodes().ids()) {
    const std::string& name = graph.node(id).name;
    if (name == "a3" || name == "v2") CHECK(plan.decisions[id].segment == 0);
    if (name == "u4" || name == "v3") CHECK(plan.decisions[id].segment == 1);
  }
}

TEST_CASE("chen-frontier: on sixteen equal layers it is chen-sqrt") {
  std::string text = "n0:10";
  for (int i = 1; i < 16; ++i) text += " -> n" + std::to_string(i) + ":10";
  const TensorGraph graph = GraphFromText(text);
  const Plan plan = PlanByFrontier(graph);
  CHECK(CutsOf(graph, plan) == "n3 n7 n11");
  CHECK(plan.figures.paper.peak == Bytes(30 + 40));
  CHECK(plan.figures.overhead == Cost(9));
}

// There are 36 bytes, and k = 3. The first cut is after a, where 2 x 6 + 6 is less than 2 x 9 + 3
// after b; the second is after e, with 2 x 1 + 5. So x + y = 7 + 23; cuts after b and e would give
// 10 + 15.
TEST_CASE("chen-frontier: not optimal, since cuts are chosen one by one") {
  const TensorGraph graph = GraphFromText("a:6 -> b:9 -> c:8 -> d:5 -> e:1 -> f:7");
  const Plan plan = PlanByFrontier(graph, 3);
  CHECK(CutsOf(graph, plan) == "a e");
  CHECK(plan.figures.paper.peak == Bytes(30));
}

TEST_CASE("frontiers: the results that cross each place of either order, on random graphs") {
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    const auto edge_percent = static_cast<int>(rng.Between(5, 60));
    const auto nodes = static_cast<int>(rng.Between(1, 20));
    const TensorGraph graph = RandomDag(rng, nodes, edge_percent, 20, 9);
    const VertexGraph vertices(graph);
    for (const Frontiers& frontiers :
         {FrontiersInGraphOrder(vertices), FrontiersByLevel(vertices)}) {
      IdVector<NodeId, size_t> position(vertices.size());
      for (size_t i = 0; i < frontiers.order.size(); ++i) position[frontiers.order[i]] = i;
      Bytes passed;
      for (size_t i = 0; i < frontiers.order.size(); ++i) {
        passed += vertices.memory(frontiers.order[i]);
        CHECK(frontiers.passed[i] == passed);
        Bytes crossing;
        for (const NodeId v : vertices.ids()) {
          const auto readers = vertices.successors(v);
          for (const NodeId w : readers) CHECK(position[v] < position[w]);
          const bool crosses =
              position[v] <= i && std::any_of(readers.begin(), readers.end(),
                                              [&](NodeId w) { return position[w] > i; });
          if (crosses) crossing += vertices.memory(v);
        }
        CHECK(frontiers.frontier[i] == crossing);
      }
      for (int64_t segments = 1; segments <= static_cast<int64_t>(vertices.size()); ++segments) {
        const std::vector<size_t> cuts = CutAtSmallFrontiers(frontiers, segments);
        CHECK(std::ssize(cuts) < segments);
        CHECK(std::is_sorted(cuts.begin(), cuts.end(), std::less_equal<>()));
        if (!cuts.empty()) CHECK(cuts.back() + 1 < frontiers.order.size());
      }
    }
  }
}

}  // namespace ckplan
