#include "lib/schedule/simulate.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "lib/base/rng.h"
#include "lib/schedule/arena.h"
#include "lib/schedule/lower.h"
#include "lib/schedule/timeline.h"
#include "lib/testing/graph_text.h"
#include "lib/testing/random_graph.h"

namespace ckplan {
namespace {

std::vector<NodeId> GraphOrder(const TensorGraph& graph) {
  std::vector<NodeId> order;
  for (const NodeId id : graph.nodes().ids()) order.push_back(id);
  return order;
}

bool Reads(const TensorGraph& graph, const Step& step, TensorId tensor) {
  const auto lists = [&](const std::vector<TensorId>& list) {
    return std::count(list.begin(), list.end(), tensor) > 0;
  };
  switch (step.kind) {
    case StepKind::kForward:
      return lists(graph.node(step.node()).inputs);
    case StepKind::kBackward:
      return lists(graph.node(step.node()).backward_reads);
    case StepKind::kLoss:
      return lists(graph.outputs());
    case StepKind::kFree:
      return false;
  }
  return false;
}

bool Makes(const TensorGraph& graph, const Step& step, TensorId tensor) {
  if (step.kind != StepKind::kForward) return false;
  const std::vector<TensorId>& outputs = graph.node(step.node()).outputs;
  return std::count(outputs.begin(), outputs.end(), tensor) > 0;
}

// What Simulator computes, in the plainest way: for each step and each tensor it asks, by the
// definition, whether the tensor is in memory there. Gradients are counted with lists of who holds
// which buffer.
class NaiveSimulation {
 public:
  NaiveSimulation(const TensorGraph& graph, const Schedule& schedule)
      : graph_(graph), steps_(schedule.steps) {}

  Bytes Peak() {
    Bytes peak;
    for (size_t k = 0; k < steps_.size(); ++k) peak = std::max(peak, Needed(k));
    return peak;
  }

  Cost Overhead() const {
    std::set<int32_t> seen;
    Cost overhead;
    for (const Step& step : steps_) {
      if (step.kind != StepKind::kForward) continue;
      if (!seen.insert(step.index).second) overhead += graph_.node(step.node()).forward_cost;
    }
    return overhead;
  }

 private:
  // The version of `tensor` that is there while step k runs is the last one made at or before k.
  // It is in memory if it was made at k, or is read at k or later before it is made again.
  bool IsInMemory(TensorId tensor, size_t k) const {
    if (graph_.is_input(tensor)) return false;
    size_t made = k + 1;
    while (made > 0 && !Makes(graph_, steps_[made - 1], tensor)) --made;
    if (made == 0) return false;
    if (made - 1 == k) return true;
    for (size_t later = k; later < steps_.size(); ++later) {
      if (Reads(graph_, steps_[later], tensor)) return true;
      if (Makes(graph_, steps_[later], tensor)) return false;
    }
    return false;
  }

  bool DiesAt(TensorId tensor, size_t k) const {
    if (!Reads(graph_, steps_[k], tensor)) return false;
    for (size_t later = k + 1; later < steps_.size(); ++later) {
      if (Makes(graph_, steps_[later], tensor)) return true;
      if (Reads(graph_, steps_[later], tensor)) return false;
    }
    return true;
  }

  // At a forward step the old version of a recomputed tensor is gone unless the step reads it.
  Bytes Needed(size_t k) {
    const Step& step = steps_[k];
    Bytes bytes;
    for (const TensorId tensor : graph_.tensors().ids()) {
      if (IsInMemory(tensor, k)) bytes += graph_.tensor(tensor).bytes;
    }
    if (step.kind == StepKind::kForward) {
      const Node& node = graph_.node(step.node());
      bytes += node.forward_workspace + GradientBytes();
      for (const auto& [output, input] : node.in_place) {
        if (graph_.is_input(input) || !DiesAt(input, k)) continue;
        if (graph_.tensor(input).bytes != graph_.tensor(output).bytes) continue;
        return bytes - graph_.tensor(input).bytes;
      }
      return bytes;
    }
    if (step.kind == StepKind::kLoss) {
      for (const TensorId output : graph_.outputs()) {
        if (graph_.tensor(output).requires_grad) holder_[output] = buffers_++;
        if (graph_.tensor(output).requires_grad)
          size_[holder_[output]] = graph_.tensor(output).bytes;
      }
      return bytes + GradientBytes();
    }
    return bytes + graph_.node(step.node()).backward_workspace + RunBackward(step.node());
  }

  // The bytes of all buffers that some gradient holds.
  Bytes GradientBytes() const {
    std::set<int> held;
    for (const auto& [tensor, buffer] : holder_) held.insert(buffer);
    Bytes bytes;
    for (const int buffer : held) bytes += size_.at(buffer);
    return bytes;
  }

  bool IsShared(TensorId tensor) const {
    int holders = 0;
    for (const auto& [other, buffer] : holder_) holders += buffer == holder_.at(tensor);
    return holders > 1;
  }

  // The maximum of gradient bytes while the backward of a node runs.
  Bytes RunBackward(NodeId id) {
    const Node& node = graph_.node(id);
    Bytes highest = GradientBytes();
    TensorId output;
    for (auto it = node.outputs.rbegin(); it != node.outputs.rend(); ++it) {
      if (holder_.count(*it) != 0) output = *it;
    }
    if (output.is_none()) return highest;
    for (const TensorId input : node.inputs) {
      if (!graph_.tensor(input).requires_grad) continue;
      const Bytes bytes = graph_.tensor(input).bytes;
      const auto& passes = node.gradient_passthrough;
      const bool is_passed = std::count(passes.begin(), passes.end(), input) > 0 &&
                             bytes == graph_.tensor(output).bytes;
      const bool is_first = holder_.count(input) == 0;
      Bytes temporary = is_passed ? Bytes(0) : bytes;
      if (is_first) {
        holder_[input] = is_passed ? holder_.at(output) : buffers_++;
        size_[holder_[input]] = bytes;
        temporary = Bytes(0);
      } else if (IsShared(input)) {
        // The old buffer stays with its other holders; the copy is new.
        holder_[input] = buffers_++;
        size_[holder_[input]] = bytes;
      }
      highest = std::max(highest, GradientBytes() + temporary);
    }
    for (const TensorId out : node.outputs) holder_.erase(out);
    return highest;
  }

  const TensorGraph& graph_;
  const std::vector<Step>& steps_;
  std::map<TensorId, int> holder_;
  std::map<int, Bytes> size_;
  int buffers_ = 0;
};

KeptSet RandomKeptSet(Rng& rng, const TensorGraph& graph) {
  KeptSet kept;
  const int percent = static_cast<int>(rng.Between(0, 100));
  for (size_t i = 0; i < graph.nodes().size(); ++i) kept.is_kept.push_back(rng.Chance(percent));
  return kept;
}

}  // namespace

TEST_CASE("simulate: a chain of three, worked by hand") {
  // a:4 → b:2 → c:1; backward of each node reads its inputs and its output.
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
  for (uint64_t seed = 1; seed <= 2000; ++seed) {
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
  }
}

TEST_CASE(
    "arena: buffers that live together never overlap, and the slab is hardly larger than the "
    "peak") {
  int tight = 0;
  int tried = 0;
  for (uint64_t seed = 1; seed <= 500; ++seed) {
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

TEST_CASE("simulate: what is no valid training step is told with step and tensor") {
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
      {"never run backward", [](std::vector<Step>* s) { s->pop_back(); }},
      {"reverse of the forward order", [](std::vector<Step>* s) { std::swap((*s)[4], (*s)[5]); }},
      {"second loss", [](std::vector<Step>* s) { s->push_back(Step::Loss()); }},
      {"there is no loss", [](std::vector<Step>* s) { s->clear(); }},
      {"before 1 nodes have run forward", [](std::vector<Step>* s) { s->erase(s->begin() + 2); }},
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

TEST_CASE("simulate: explicit frees release at their step and nowhere else") {
  // The chain above, but a is freed only at the very end, after the gradients are gone.
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

TEST_CASE("lower: what no backward needs is never recomputed") {
  // Add-like nodes whose backward reads nothing: dropping them costs nothing.
  TensorGraphParts parts = PartsOf(GraphFromText("a:4@1 -> b:2@3 -> c:1@5"));
  for (Node& node : parts.nodes) node.backward_reads.clear();
  const TensorGraph graph = *TensorGraph::Create(std::move(parts));
  const Schedule schedule = LowerStrategy(graph, KeptSet{IdVector<NodeId, bool>(3, false)});
  CHECK(Simulator(graph).Run(schedule)->overhead == Cost(0));
}

TEST_CASE("lower: a sequence keeps boundaries and the last segment, and recomputes the rest once") {
  //   a → b → c → d, cut behind b: a is recomputed, b, c and d are not.
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
