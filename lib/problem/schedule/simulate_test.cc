#include "lib/problem/schedule/simulate.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "lib/base/rng.h"
#include "lib/problem/schedule/arena.h"
#include "lib/problem/schedule/lower.h"
#include "lib/problem/schedule/lower_without_liveness.h"
#include "lib/problem/schedule/timeline.h"
#include "lib/testing/graph_text.h"
#include "lib/testing/instances.h"
#include "lib/testing/naive_simulation.h"
#include "lib/testing/random_graph.h"
#include "lib/testing/random_schedule.h"

namespace ckplan {
namespace {

std::vector<NodeId> GraphOrder(const TensorGraph& graph) {
  std::vector<NodeId> order;
  for (const NodeId id : graph.nodes().ids()) order.push_back(id);
  return order;
}

}  // namespace

TEST_CASE("simulate: a chain of three, worked by hand") {
  // a:4 → b:2 → c:1; the backward of each node reads its inputs and its output.
  //   f(a) 4 | f(b) 6 | f(c) 7 | loss: a b c + gradient of c = 8
  //   b(c): 7 + gradients c, b = 10 | b(b): a, b + gradients b, a = 12 | b(a): a + gradient a = 8
  const TensorGraph graph = GraphFromText("a:4@1 -> b:2@3 -> c:1@5");
  const Simulation result = *Simulator(graph).Run(KeepAllSchedule(GraphOrder(graph)));
  CHECK(result.peak == Bytes(12));
  CHECK(result.peak_step == 5);
  CHECK(result.overhead == Cost(0));
}

TEST_CASE("simulate: a recomputed node is charged beyond its first run") {
  const TensorGraph graph = GraphFromText("a:4@1 -> b:2@3 -> c:1@5");
  KeptSet kept{IdVector<NodeId, bool>(3, true)};
  kept.is_kept[NodeId(1)] = false;
  const Schedule schedule = LowerStrategy(graph, kept);
  CHECK(Simulator(graph).Run(schedule)->overhead == Cost(3));
}

TEST_CASE("simulate: it agrees with its naive twin, and the timeline with both") {
  for (uint64_t seed = 1; seed <= Instances(2000); ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    RandomGraphOptions options;
    options.nodes = static_cast<int>(rng.Between(1, 12));
    const TensorGraph graph = RandomTensorGraph(rng, options);
    const Schedule schedule = LowerStrategy(graph, RandomKeptSet(rng, graph));
    const auto result = Simulator(graph).Run(schedule);
    REQUIRE(result.ok());
    NaiveSimulation naive(graph, schedule);
    CHECK(result->peak == naive.Peak());
    CHECK(result->overhead == naive.Overhead());

    const Timeline timeline = BuildTimeline(graph, schedule);
    CHECK(timeline.peak == result->peak);
    CHECK(timeline.peak_step == result->peak_step);
    for (const Buffer& buffer : timeline.buffers) CHECK(buffer.begin < buffer.end);
    CHECK(NaiveArenaFaults(graph, schedule, PlaceBuffers(timeline).offsets).empty());
  }
}

TEST_CASE("simulate: it agrees with its naive twin where tensors are freed explicitly") {
  for (uint64_t seed = 1; seed <= Instances(500); ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    const TensorGraph graph = RandomTensorGraph(rng);
    const Schedule schedule = LowerWithoutLiveness(graph, RandomKeptSet(rng, graph));
    const auto result = Simulator(graph).Run(schedule);
    REQUIRE(result.ok());
    NaiveSimulation naive(graph, schedule);
    CHECK(result->peak == naive.Peak());
    CHECK(result->overhead == naive.Overhead());
  }
}

TEST_CASE(
    "arena: buffers that live together never overlap, and the slab is hardly larger than the "
    "peak") {
  int tight = 0;
  int tried = 0;
  for (uint64_t seed = 1; seed <= Instances(500); ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    RandomGraphOptions options;
    options.nodes = static_cast<int>(rng.Between(1, 30));
    const TensorGraph graph = RandomTensorGraph(rng, options);
    const Timeline timeline = BuildTimeline(graph, LowerStrategy(graph, RandomKeptSet(rng, graph)));
    const Arena arena = PlaceBuffers(timeline);
    REQUIRE(arena.offsets.size() == timeline.buffers.size());
    CHECK(arena.bytes >= timeline.peak);
    for (size_t a = 0; a < timeline.buffers.size(); ++a) {
      const Buffer& x = timeline.buffers[a];
      CHECK(arena.offsets[a] >= Bytes(0));
      CHECK(arena.offsets[a] + x.bytes <= arena.bytes);
      for (size_t b = 0; b < a; ++b) {
        const Buffer& y = timeline.buffers[b];
        const bool live_together = x.begin < y.end && y.begin < x.end;
        const bool overlap = arena.offsets[a] < arena.offsets[b] + y.bytes &&
                             arena.offsets[b] < arena.offsets[a] + x.bytes;
        CHECK_FALSE((live_together && overlap));
      }
    }
    ++tried;
    if (arena.bytes == timeline.peak) ++tight;
  }
  CHECK(tight * 10 >= tried * 7);
}

TEST_CASE("simulate: the fault of an invalid training step names the step and the tensor") {
  const TensorGraph graph = GraphFromText("a:4@1 -> b:2@3 -> c:1@5");
  const Schedule good = KeepAllSchedule(GraphOrder(graph));
  struct Row {
    const char* part_of_message;
    void (*damage)(std::vector<Step>*);
  };
  const Row rows[] = {
      {"which is not in memory",
       [](std::vector<Step>* s) {
         *s = KeepAllSchedule({NodeId(1), NodeId(0), NodeId(2)}).steps;  // b before a
       }},
      {"never runs, but must", [](std::vector<Step>* s) { s->pop_back(); }},
      {"which adds to a gradient first", [](std::vector<Step>* s) { std::swap((*s)[4], (*s)[5]); }},
      {"must not run twice", [](std::vector<Step>* s) { s->push_back((*s)[4]); }},
      {"must not run twice", [](std::vector<Step>* s) { s->push_back(Step::Loss()); }},
      {"\"a\" never runs, but must", [](std::vector<Step>* s) { s->clear(); }},
      {"the loss never runs, but must",
       [](std::vector<Step>* s) { s->erase(s->begin() + 3, s->end()); }},
      {"before its node has run forward", [](std::vector<Step>* s) { s->erase(s->begin() + 2); }},
      {"does not have", [](std::vector<Step>* s) { (*s)[0].index = 99; }},
      {"may not free", [](std::vector<Step>* s) { s->push_back(Step::Free(TensorId(0))); }},
      {"comes before the loss", [](std::vector<Step>* s) { std::swap((*s)[3], (*s)[4]); }},
  };
  for (const Row& row : rows) {
    CAPTURE(std::string(row.part_of_message));
    Schedule bad = good;
    row.damage(&bad.steps);
    const auto result = Simulator(graph).Run(bad);
    REQUIRE(!result.ok());
    CHECK(result.error().message.find(row.part_of_message) != std::string::npos);
  }
}

TEST_CASE("simulate: a node with two outputs takes over the memory of the first input that dies") {
  // c reads a and b and makes d and e, all of 4 bytes: d may be written over a, and e over b.
  TensorGraphParts parts = PartsOf(GraphFromText("a:4 -> c:4; b:4 -> c"));
  Tensor second = parts.tensors[TensorId(2)];
  second.file_id = static_cast<int64_t>(parts.tensors.size());
  second.name = "e";
  const TensorId e = parts.tensors.push_back(second);
  Node& node = parts.nodes[NodeId(2)];
  REQUIRE(node.name == "c");
  const TensorId c = node.outputs[0];
  node.outputs.push_back(e);
  for (Node& any : parts.nodes) any.backward_reads.clear();  // So a and b die at c.
  for (const TensorId input : node.inputs) {
    node.in_place.push_back({node.in_place.empty() ? c : e, input});
  }
  const TensorGraph graph = *TensorGraph::Create(std::move(parts));
  const Schedule schedule = KeepAllInOwnOrder(graph);
  const Simulation simulation = *Simulator(graph).Run(schedule);
  CHECK(simulation.peak == NaiveSimulation(graph, schedule).Peak());
  const Timeline timeline = BuildTimeline(graph, schedule);
  CHECK(timeline.peak == simulation.peak);
  size_t forward_buffers = 0;
  for (const Buffer& buffer : timeline.buffers) {
    forward_buffers += buffer.kind == BufferKind::kTensor ? 1 : 0;
  }
  CHECK(forward_buffers == 3);  // For four tensors.
}

TEST_CASE("simulate: an explicit free releases at its step and nowhere else") {
  // The chain above, but a is freed only at the very end, after the gradients.
  const TensorGraph graph = GraphFromText("a:4@1 -> b:2@3 -> c:1@5");
  Schedule schedule = KeepAllSchedule(GraphOrder(graph));
  schedule.frees = FreePolicy::kExplicit;
  for (const int32_t t : {0, 1, 2}) schedule.steps.push_back(Step::Free(TensorId(t)));
  const Simulation result = *Simulator(graph).Run(schedule);
  CHECK(result.peak == Bytes(7 + 6));  // All tensors, and the gradients of b and a.
  CHECK(BuildTimeline(graph, schedule).peak == result.peak);

  Schedule leak = schedule;
  leak.steps.pop_back();
  CHECK(Simulator(graph).Run(leak).error().message.find("never freed") != std::string::npos);
  Schedule twice = schedule;
  twice.steps.push_back(Step::Free(TensorId(0)));
  CHECK_FALSE(Simulator(graph).Run(twice).ok());
}

TEST_CASE("lower: a node that no backward needs is never recomputed") {
  // The backward of Add-like nodes reads nothing, so dropping them costs nothing.
  TensorGraphParts parts = PartsOf(GraphFromText("a:4@1 -> b:2@3 -> c:1@5"));
  for (Node& node : parts.nodes) node.backward_reads.clear();
  const TensorGraph graph = *TensorGraph::Create(std::move(parts));
  const Schedule schedule = LowerStrategy(graph, KeptSet{IdVector<NodeId, bool>(3, false)});
  CHECK(Simulator(graph).Run(schedule)->overhead == Cost(0));
}

TEST_CASE("lower: a sequence keeps boundaries and the last segment, and recomputes the rest once") {
  //   a → b → c → d, cut after b: a is recomputed; b, c and d are not.
  const TensorGraph graph = GraphFromText("a:1@1 -> b:1@2 -> c:1@4 -> d:1@8");
  LowerSetSequence sequence{IdVector<NodeId, int32_t>(std::vector<int32_t>{0, 0, 1, 1}), 2};
  CHECK(Simulator(graph).Run(LowerStrategy(graph, sequence))->overhead == Cost(1));
}

TEST_CASE("lower: a dropped chain of 100,000 nodes needs no deep recursion") {
  std::vector<TextVertex> vertices;
  std::vector<std::pair<int32_t, int32_t>> edges;
  for (int32_t i = 0; i < 100'000; ++i) {
    vertices.push_back({std::to_string(i), Bytes(1), Cost(1)});
    if (i > 0) edges.emplace_back(i - 1, i);
  }
  const TensorGraph graph = GraphFromVertices("long", vertices, edges);
  const KeptSet nothing{IdVector<NodeId, bool>(graph.nodes().size(), false)};
  CHECK(Simulator(graph).Run(LowerStrategy(graph, nothing))->overhead == Cost(100'000));
}

}  // namespace ckplan
