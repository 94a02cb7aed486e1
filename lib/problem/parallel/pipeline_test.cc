#include "lib/problem/parallel/pipeline.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

#include "lib/base/rng.h"
#include "lib/testing/graph_text.h"
#include "lib/testing/random_graph.h"

namespace ckplan {
namespace {

// Counts the most micro-batches that wait for backward in a stage, by running the schedule as its
// authors draw it: a stage of 1F1B runs forward once for each later stage, and then alternates
// forward and backward.
int64_t CountedInFlight(const PipelineStage& stage, int64_t micro_batches,
                        PipelineSchedule schedule) {
  const bool is_gpipe = schedule == PipelineSchedule::kGPipe;
  const int64_t warm_up = is_gpipe ? micro_batches : stage.stages - 1 - stage.index;
  int64_t begun = 0;
  int64_t waiting = 0;
  int64_t most = 0;
  const auto forward = [&] {
    ++begun;
    most = std::max(most, ++waiting);
  };
  while (begun < std::min(warm_up, micro_batches)) forward();
  while (begun < micro_batches) {
    forward();
    --waiting;
  }
  return most;
}

TEST_CASE("pipeline: micro-batches in flight, counted as the schedules run") {
  for (const PipelineSchedule schedule : {PipelineSchedule::k1F1B, PipelineSchedule::kGPipe}) {
    for (int64_t stages = 1; stages <= 5; ++stages) {
      for (int64_t index = 0; index < stages; ++index) {
        for (int64_t micro_batches = 1; micro_batches <= 8; ++micro_batches) {
          CAPTURE(stages);
          CAPTURE(index);
          CAPTURE(micro_batches);
          const PipelineStage stage{stages, index};
          CHECK(MicroBatchesInFlight(stage, micro_batches, schedule) ==
                CountedInFlight(stage, micro_batches, schedule));
        }
      }
    }
  }
  CHECK(TextOf(PipelineStage{4, 1}) == "4/1");
}

Result<NodeRange> RangeOf(const TensorGraph& graph, const ModuleCalls& modules,
                          const PipelineStage& stage, const std::vector<std::string>& cuts) {
  CKPLAN_ASSIGN_OR_RETURN(const std::vector<NodeId> starts,
                          StartsOfStages(graph, modules, stage.stages, cuts));
  return NodesOfStage(starts, stage.index, graph.nodes().size());
}

std::string NamesOfStage(const TensorGraph& graph, const PipelineStage& stage,
                         const std::vector<std::string>& cuts = {}) {
  const NodeRange nodes = RangeOf(graph, {}, stage, cuts).value();
  std::string names;
  for (NodeId id = nodes.begin; id < nodes.end; ++id) names += graph.node(id).name;
  return names;
}

TEST_CASE("pipeline: stages are balanced by cost, or cut at the named nodes") {
  const TensorGraph graph = GraphFromText("a:1@1 -> b:1@5 -> c:1@2 -> d:1@2 -> e:1@4");
  CHECK(NamesOfStage(graph, {3, 0}) == "ab");
  CHECK(NamesOfStage(graph, {3, 1}) == "cd");
  CHECK(NamesOfStage(graph, {3, 2}) == "e");
  CHECK(NamesOfStage(graph, {5, 4}) == "e");
  CHECK(NamesOfStage(graph, {1, 0}) == "abcde");
  CHECK(NamesOfStage(graph, {3, 1}, {"b", "e"}) == "bcd");
  // Each stage gets a node even if the stages before it could take all.
  CHECK(NamesOfStage(GraphFromText("a:1@0 -> b:1@0 -> c:1@0"), {3, 1}) == "b");
}

TEST_CASE("pipeline: a cut may be a module, which begins with its first node") {
  const TensorGraph graph = GraphFromText("a:1 -> b:1 -> c:1 -> d:1");
  const ModuleCalls modules = {{{"", "Net"}, {"stem", "Conv"}, {"body.0", "Block"}},
                               IdVector<NodeId, int32_t>(std::vector<int32_t>{1, 1, 2, 2})};
  const std::vector<std::string> cuts = {"body"};
  CHECK(RangeOf(graph, modules, {2, 1}, cuts).value() == NodeRange{NodeId(2), NodeId(4)});
}

TEST_CASE("pipeline: cuts that do not make these stages are refused") {
  const TensorGraph graph = GraphFromText("a:1 -> b:1 -> c:1");
  const struct {
    PipelineStage stage;
    std::vector<std::string> cuts;
    std::string part;
  } kRows[] = {
      {{4, 0}, {}, "has 3 nodes, too few for 4 stages"},
      {{3, 0}, {"b"}, "3 stages have 2 cuts between them, not 1"},
      {{2, 0}, {"x"}, "no node or module is called \"x\""},
      {{2, 0}, {"a"}, "\"a\" is no later"},
      {{3, 0}, {"c", "b"}, "\"b\" is no later"},
  };
  for (const auto& row : kRows) {
    const Result<NodeRange> nodes = RangeOf(graph, {}, row.stage, row.cuts);
    REQUIRE_FALSE(nodes.ok());
    CAPTURE(nodes.error().message);
    CHECK(nodes.error().code == ErrorCode::kUsage);
    CHECK(nodes.error().message.find(row.part) != std::string::npos);
  }
}

// Returns the least cost of the costliest stage over all ways to cut.
Cost LeastOfCuts(const std::vector<Cost>& costs, size_t begin, int64_t stages) {
  Cost sum;
  if (stages == 1) {
    for (size_t i = begin; i < costs.size(); ++i) sum += costs[i];
    return sum;
  }
  Cost least = Cost::Max();
  for (size_t end = begin + 1; end + static_cast<size_t>(stages) <= costs.size() + 1; ++end) {
    sum += costs[end - 1];
    least = std::min(least, std::max(sum, LeastOfCuts(costs, end, stages - 1)));
  }
  return least;
}

TEST_CASE("pipeline: no other cut of a random graph has a cheaper costliest stage") {
  Rng rng(7);
  for (int round = 0; round < 200; ++round) {
    CAPTURE(round);
    const TensorGraph graph = RandomTensorGraph(rng, {.nodes = 8});
    std::vector<Cost> costs;
    for (const Node& node : graph.nodes()) costs.push_back(node.forward_cost + node.backward_cost);
    const int64_t stages = rng.Between(1, static_cast<int64_t>(std::min<size_t>(4, costs.size())));
    Cost costliest;
    for (int64_t index = 0; index < stages; ++index) {
      const NodeRange nodes = RangeOf(graph, {}, {stages, index}, {}).value();
      Cost cost;
      for (NodeId id = nodes.begin; id < nodes.end; ++id) {
        cost += costs[static_cast<size_t>(id.index())];
      }
      costliest = std::max(costliest, cost);
    }
    CHECK(costliest == LeastOfCuts(costs, 0, stages));
  }
}

TEST_CASE(
    "pipeline: a stage's inputs are the tensors it reads, its outputs those that others read") {
  // a's result skips the stage of b and c and goes to d.
  const TensorGraph graph = GraphFromText("a:1 -> b:2 -> c:3 -> d:4; a -> d");
  const StageGraph stage = CutStage(graph, {NodeId(1), NodeId(3)});
  const TensorGraph middle = TensorGraph::Create(stage.parts).value();
  REQUIRE(middle.tensors().size() == 3);
  CHECK(middle.tensor(TensorId(0)).kind == TensorKind::kInput);
  CHECK(middle.tensor(TensorId(0)).requires_grad);
  CHECK(middle.constants().inputs == Bytes(1));
  CHECK(middle.outputs() == std::vector<TensorId>{TensorId(2)});
  const TensorGraph first =
      TensorGraph::Create(CutStage(graph, {NodeId(0), NodeId(1)}).parts).value();
  CHECK(first.outputs() == std::vector<TensorId>{TensorId(0)});
  TensorGraphParts parts = stage.parts;
  parts.micro_batches = 3;
  CHECK(TensorGraph::Create(std::move(parts)).value().constants().inputs == Bytes(3));
}

TEST_CASE(
    "pipeline: the stages of a random graph make up the whole graph, each node and tensor once") {
  Rng rng(11);
  for (int round = 0; round < 300; ++round) {
    CAPTURE(round);
    const TensorGraph graph = RandomTensorGraph(rng);
    const auto count = static_cast<int64_t>(graph.nodes().size());
    const int64_t stages = rng.Between(1, std::min<int64_t>(4, count));
    int64_t next = 0;
    Cost cost;
    IdVector<TensorId, int> made(graph.tensors().size(), 0);
    for (int64_t index = 0; index < stages; ++index) {
      const NodeRange nodes = RangeOf(graph, {}, {stages, index}, {}).value();
      CHECK(nodes.begin.index() == next);
      CHECK(nodes.end > nodes.begin);
      next = nodes.end.index();
      const StageGraph cut = CutStage(graph, nodes);
      const Result<TensorGraph> stage = TensorGraph::Create(cut.parts);
      REQUIRE_MESSAGE(stage.ok(), stage.error().message);
      cost += stage->forward_cost() + stage->backward_cost();
      for (const TensorId whole : graph.tensors().ids()) {
        const TensorId own = cut.tensor_of[whole];
        if (own.is_none()) continue;
        const Tensor& tensor = stage->tensor(own);
        CHECK(tensor.file_id == graph.tensor(whole).file_id);
        CHECK(tensor.requires_grad == graph.tensor(whole).requires_grad);
        if (tensor.kind == TensorKind::kInput) continue;
        ++made[whole];
        // A tensor that another stage reads is an output of this one.
        const std::vector<NodeId>& consumers = graph.tensor(whole).consumers;
        const bool is_read_later = !consumers.empty() && consumers.back() >= nodes.end;
        const std::vector<TensorId>& outputs = stage->outputs();
        const bool is_output = std::count(outputs.begin(), outputs.end(), own) > 0;
        const bool was_output =
            std::count(graph.outputs().begin(), graph.outputs().end(), whole) > 0;
        CHECK(is_output == (is_read_later || was_output));
      }
    }
    CHECK(next == count);
    CHECK(cost == graph.forward_cost() + graph.backward_cost());
    for (const TensorId id : graph.tensors().ids()) CHECK(made[id] == (graph.is_input(id) ? 0 : 1));
  }
}

}  // namespace
}  // namespace ckplan
