#include "lib/problem/parallel/division.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "lib/base/rng.h"
#include "lib/testing/graph_text.h"
#include "lib/testing/random_graph.h"

namespace ckplan {
namespace {

using Kind = Parameter::Kind;

// Returns a float parameter that these nodes read.
Parameter FloatsOf(Kind kind, int64_t rows, int64_t columns, std::vector<int> readers) {
  Parameter parameter{"w", kind, Bytes(4 * rows * columns), rows * columns, rows, {}};
  for (const int reader : readers) parameter.readers.emplace_back(reader);
  return parameter;
}

ShardedConstants Shard(const std::vector<Parameter>& parameters, ShardingSystem system,
                       int64_t devices) {
  return ShardConstants(parameters, {system, devices}).value();
}

// A matrix of 10 x 3, a bias of 7, running statistics of 5: 37 trained elements, 148 bytes.
const std::vector<Parameter> kLayer = {FloatsOf(Kind::kTrained, 10, 3, {0}),
                                       FloatsOf(Kind::kTrained, 7, 1, {1}),
                                       FloatsOf(Kind::kBuffer, 5, 1, {1})};

TEST_CASE(
    "sharding: zero1 divides the optimizer's state, as one list padded to twice the devices") {
  // 37 elements are padded to 40 = 5 * 2 * 4, so each device has 10.
  CHECK(Shard(kLayer, ShardingSystem::kZero1, 4) ==
        ShardedConstants{Bytes(148 + 20), Bytes(148), Bytes(40), Bytes(0), {{10, 4, 1}}});
}

TEST_CASE("sharding: zero2 divides gradients as well, which are whole while a node makes them") {
  CHECK(Shard(kLayer, ShardingSystem::kZero2, 4) ==
        ShardedConstants{Bytes(148 + 20), Bytes(40), Bytes(40), Bytes(120), {{10, 4, 1}}});
}

TEST_CASE(
    "sharding: zero3 divides each parameter by its elements, and keeps small parameters whole") {
  // Each device has ceil(30 / 4) = 8 and ceil(7 / 4) = 2 elements; 32 elements are gathered, and 8
  // are persistent. The gradient of the matrix is not divided either.
  CHECK(Shard(kLayer, ShardingSystem::kZero3, 4) ==
        ShardedConstants{Bytes(40 + 20), Bytes(40), Bytes(40), Bytes(160 + 120), {{10, 4, 1}}});
  // 100,001 elements exceed the limit for persistence: ceil(100001 / 4) = 25001, so 100,004 are
  // gathered.
  const std::vector<Parameter> large = {FloatsOf(Kind::kTrained, 100'001, 1, {0})};
  CHECK(Shard(large, ShardingSystem::kZero3, 4) == ShardedConstants{Bytes(100'004),
                                                                    Bytes(100'004),
                                                                    Bytes(100'004),
                                                                    Bytes(400'016 + 400'004),
                                                                    {{25'001, 4, 1}}});
}

TEST_CASE("sharding: fsdp divides each parameter by the rows of its first dimension") {
  // Each device has ceil(10 / 4) = 3 rows of 12 bytes and ceil(7 / 4) = 2 of 4. 12 rows
  // are gathered. The gradient is not divided either.
  CHECK(Shard(kLayer, ShardingSystem::kFsdp, 4) ==
        ShardedConstants{
            Bytes(36 + 8 + 20), Bytes(44), Bytes(44), Bytes(144 + 120), {{2, 4, 1}, {9, 4, 1}}});
  // One row cannot be divided.
  const std::vector<Parameter> row = {FloatsOf(Kind::kTrained, 1, 100, {0})};
  CHECK(Shard(row, ShardingSystem::kFsdp, 4) ==
        ShardedConstants{Bytes(400), Bytes(400), Bytes(400), Bytes(1600 + 400), {{100, 4, 1}}});
}

TEST_CASE("sharding: the node that needs the most whole memory counts") {
  // Node 2 reads both matrices; node 0 also reads one of them.
  const std::vector<Parameter> shared = {FloatsOf(Kind::kTrained, 8, 1, {0, 2}),
                                         FloatsOf(Kind::kTrained, 16, 1, {2}),
                                         FloatsOf(Kind::kTrained, 20, 1, {1})};
  CHECK(Shard(shared, ShardingSystem::kFsdp, 4).unsharded == Bytes(2 * 4 * (8 + 16)));
  CHECK(Shard(shared, ShardingSystem::kZero2, 4).unsharded == Bytes(4 * (8 + 16)));
}

TEST_CASE("sharding: frozen parameters are divided, and have no gradients or optimizer state") {
  const std::vector<Parameter> frozen = {FloatsOf(Kind::kFrozen, 8, 2, {0})};
  CHECK(Shard(frozen, ShardingSystem::kFsdp, 4) ==
        ShardedConstants{Bytes(16), Bytes(0), Bytes(0), Bytes(64), {}});
  CHECK(Shard(frozen, ShardingSystem::kZero2, 4) ==
        ShardedConstants{Bytes(64), Bytes(0), Bytes(0), Bytes(0), {}});
}

TEST_CASE("sharding: types of other sizes have flat lists of their own") {
  std::vector<Parameter> mixed = kLayer;
  mixed.push_back({"half", Kind::kTrained, Bytes(2 * 9), 9, 9, {}});
  // 40 floats and 16 halves: each device has 10 and 4.
  const ShardedConstants zero2 = Shard(mixed, ShardingSystem::kZero2, 4);
  CHECK(zero2.optimized == Bytes(40 + 8));
  CHECK(zero2.optimized_tensors == std::vector<OptimizedTensors>{{4, 2, 1}, {10, 4, 1}});
}

TEST_CASE("sharding: padding that overflows is an error") {
  const int64_t huge = std::numeric_limits<int64_t>::max() / 8;
  const std::vector<Parameter> row = {FloatsOf(Kind::kTrained, 1, huge, {0})};
  CHECK(ShardConstants(row, {ShardingSystem::kFsdp, 8}).error().code == ErrorCode::kInvalidInput);
}

TEST_CASE("sharding: text") {
  CHECK(TextOf({ShardingSystem::kFsdp, 8}) == "fsdp:8");
  CHECK(TextOf({ShardingSystem::kZero3, 64}) == "zero3:64");
}

// Together, the devices store each parameter completely. Padding adds at most one unit of each
// parameter per device.
TEST_CASE("sharding: all devices together hold everything, and little more") {
  Rng rng(20);
  for (int round = 0; round < 500; ++round) {
    CAPTURE(round);
    std::vector<Parameter> parameters;
    Bytes trained, frozen, buffers, slack;
    const int64_t devices = rng.Between(2, 20);
    for (int64_t i = rng.Between(1, 8); i > 0; --i) {
      const auto kind = static_cast<Kind>(rng.Between(0, 2));
      const int64_t columns = rng.Between(1, 9);
      const int64_t rows = rng.Between(1, 40);
      parameters.push_back(FloatsOf(kind, rows, columns, {0}));
      const Parameter& made = parameters.back();
      (kind == Kind::kTrained ? trained : kind == Kind::kFrozen ? frozen : buffers) += made.bytes;
      slack += Bytes(made.bytes.count() / made.rows);
    }
    const ShardedConstants zero1 = Shard(parameters, ShardingSystem::kZero1, devices);
    const ShardedConstants zero2 = Shard(parameters, ShardingSystem::kZero2, devices);
    CHECK(zero1.parameters == trained + frozen + buffers);
    CHECK(zero2.parameters == zero1.parameters);
    CHECK(zero1.parameter_gradients == trained);
    CHECK(zero2.optimized == zero1.optimized);
    CHECK(zero2.parameter_gradients == zero2.optimized);
    CHECK(devices * zero2.optimized >= trained);
    CHECK(devices * zero2.optimized < trained + Bytes(4 * 2 * devices));
    for (const ShardingSystem system : {ShardingSystem::kZero3, ShardingSystem::kFsdp}) {
      const ShardedConstants all = Shard(parameters, system, devices);
      const Bytes divided = all.parameters - buffers;
      CHECK(devices * divided >= trained + frozen);
      CHECK(devices * divided <= trained + frozen + devices * slack);
      CHECK(all.parameter_gradients == all.optimized);
      CHECK(devices * all.optimized >= trained);
      CHECK(all.optimized <= divided);
      // One node reads all parameters.
      CHECK(all.unsharded == devices * divided + trained);
    }
  }
}

// Counts the maximum number of micro-batches that wait for backward in a stage, by following the
// schedule as its authors draw it: a stage of 1F1B runs forward once for each later stage, and then
// alternates forward and backward.
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
      {{3, 0}, {"b"}, "3 stages need 2 cuts, not 1"},
      {{2, 0}, {"x"}, "no node or module is named \"x\""},
      {{2, 0}, {"a"}, "\"a\" must come after"},
      {{3, 0}, {"c", "b"}, "\"b\" must come after"},
  };
  for (const auto& row : kRows) {
    const Result<NodeRange> nodes = RangeOf(graph, {}, row.stage, row.cuts);
    REQUIRE_FALSE(nodes.ok());
    CAPTURE(nodes.error().message);
    CHECK(nodes.error().code == ErrorCode::kUsage);
    CHECK(nodes.error().message.find(row.part) != std::string::npos);
  }
}

// Returns the minimum over all cuts of the cost of the most expensive stage.
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
