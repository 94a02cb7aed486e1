// Tests the algorithms of Chen et al. 2016 beyond the suite that all solvers share.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "lib/base/rng.h"
#include "lib/planning/algorithms/chen/chen_drop.h"
#include "lib/planning/algorithms/chen/chen_greedy.h"
#include "lib/planning/plan/check.h"
#include "lib/planning/planner/planner.h"
#include "lib/testing/graph_text.h"
#include "lib/testing/instances.h"
#include "lib/testing/random_graph.h"

namespace ckplan {

namespace {

std::vector<int64_t> RandomSizes(Rng& rng, int max_count) {
  std::vector<int64_t> bytes(static_cast<size_t>(rng.Between(1, max_count)));
  for (int64_t& size : bytes) size = rng.Between(1, 20);
  return bytes;
}

PlanRequest RequestOf(const char* algorithm) {
  PlanRequest request;
  request.algorithm = algorithm;
  return request;
}

PlanRequest RequestOf(const char* algorithm, int64_t paper_budget) {
  PlanRequest request = RequestOf(algorithm);
  request.paper_budget = {Budget::Kind::kBytes, Bytes(paper_budget), 0};
  return request;
}

// Alg. 3, line by line, on a chain whose candidates are all vertices but the last.
struct PrintedAlg3 {
  std::vector<int32_t> segment_of;
  int64_t x = 0;
  int64_t y = 0;

  PrintedAlg3(const std::vector<int64_t>& bytes, int64_t budget) {
    int64_t temp = 0;
    int32_t segment = 0;
    for (size_t v = 0; v < bytes.size(); ++v) {
      temp += bytes[v];
      segment_of.push_back(segment);
      if (v + 1 < bytes.size() && temp > budget) {
        x += bytes[v];
        y = std::max(y, temp);
        temp = 0;
        ++segment;
      }
    }
    y = std::max(y, temp);
  }
};

}  // namespace

TEST_CASE("chen-greedy: the printed program on random chains and budgets") {
  for (uint64_t seed = 1; seed <= Instances(2000); ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    const std::vector<int64_t> bytes = RandomSizes(rng, 20);
    const int64_t budget = rng.Between(0, 60);
    const PrintedAlg3 printed(bytes, budget);
    const TensorGraph graph = ChainOf(bytes);
    const Plan plan = *MakePlan(graph, RequestOf("chen-greedy", budget), {});
    CHECK(plan.figures.paper.budget == Bytes(budget));
    CHECK(plan.figures.paper.peak == Bytes(printed.x + printed.y));
    for (const NodeId v : graph.nodes().ids()) {
      CHECK(plan.decisions[v].segment == printed.segment_of[static_cast<size_t>(v.index())]);
    }
    CHECK(CheckPlan(graph, plan).empty());
  }
}

TEST_CASE("chen-greedy: B = 0 cuts everywhere, a large B nowhere") {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    const std::vector<int64_t> bytes = RandomSizes(rng, 12);
    const TensorGraph graph = ChainOf(bytes);
    const Plan all = *MakePlan(graph, RequestOf("chen-greedy", 0), {});
    const Plan none = *MakePlan(graph, RequestOf("chen-greedy", 1'000'000), {});
    for (const NodeId v : graph.nodes().ids()) {
      CHECK(all.decisions[v].segment == v.index());
      CHECK(none.decisions[v].segment == 0);
    }
    CHECK(all.figures.overhead == Cost(0));   // Every result is kept at a cut.
    CHECK(none.figures.overhead == Cost(0));  // The only segment is the last one.
  }
}

// Sixteen layers of 10 bytes: with B = 0, x = 150 and y = 10, so B = floor(sqrt 1500) = 38. A
// segment ends at 40 bytes: four segments of four layers, x = 30 and y = 40.
TEST_CASE("chen-greedy: without a budget it takes B = sqrt(x y)") {
  const TensorGraph graph = ChainOf(std::vector<int64_t>(16, 10));
  const Plan plan = *MakePlan(graph, RequestOf("chen-greedy"), {});
  CHECK(plan.figures.paper.budget == Bytes(38));
  CHECK(plan.figures.paper.peak == Bytes(70));
  CHECK(plan.figures.paper.overhead == Cost(13));  // All nodes except the three at the cuts.
  CHECK(plan.figures.overhead == Cost(9));         // The last segment is kept.
}

// Keeping only b needs 1 + (9 + 9 + 1) = 20. But any budget that ends the first segment at b is one
// that both c and d exceed.
TEST_CASE("chen-greedy: not optimal if no budget suits all segments") {
  const TensorGraph graph = ChainOf({8, 1, 9, 9, 1});
  Bytes best = Bytes::Max();
  for (int64_t budget = 0; budget <= 28; ++budget) {
    const Plan plan = *MakePlan(graph, RequestOf("chen-greedy", budget), {});
    best = std::min(best, plan.figures.paper.peak);
  }
  CHECK(best == Bytes(27));
}

TEST_CASE("chen-search: never a larger arena than any point of its grid") {
  int better = 0;
  for (uint64_t seed = 1; seed <= Instances(300); ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    const TensorGraph graph = ChainOf(RandomSizes(rng, 60));
    const Plan best = *MakePlan(graph, RequestOf("chen-search"), {});
    const Plan greedy = *MakePlan(graph, RequestOf("chen-greedy"), {});
    CHECK(best.figures.arena <= greedy.figures.arena);
    better += best.figures.arena < greedy.figures.arena;
    const int64_t centre = greedy.figures.paper.budget->count();
    const Bytes low = GeometricMean(Bytes(centre), Bytes(centre / 2));
    const Bytes high = GeometricMean(Bytes(centre), Bytes(2 * centre));
    CHECK(*best.figures.paper.budget >= low);
    CHECK(*best.figures.paper.budget <= high);
    for (int64_t i = 0; i <= 5; ++i) {
      const int64_t point = low.count() + (high - low).count() * i / 5;
      const Plan plan = *MakePlan(graph, RequestOf("chen-greedy", point), {});
      CHECK(best.figures.arena <= plan.figures.arena);
    }
  }
  CHECK(better > Instances(30));
}

// Sixteen layers of 10 bytes with k = 1: log2 16 = 4 results, one on each level.
TEST_CASE("chen-recursive: Eq. 3 by the paper's own figures, and a lower simulated overhead") {
  const TensorGraph graph = ChainOf(std::vector<int64_t>(16, 10));
  const Plan plan = *MakePlan(graph, RequestOf("chen-recursive"), {});
  CHECK(plan.figures.paper.peak == Bytes(4 * 10));
  CHECK(plan.figures.paper.overhead == Cost(4 * 16));
  CHECK(plan.figures.peak == Bytes((4 + 3) * 10));
  CHECK(plan.figures.overhead == Cost(17));
  CHECK(plan.decisions[NodeId(0)].recompute_count == 3);
  CHECK(plan.decisions[NodeId(15)].recompute_count == 0);
  CHECK(plan.decisions[NodeId(7)].segment == 0);
  CHECK(plan.decisions[NodeId(8)].segment == 1);
}

TEST_CASE("chen-recursive: the least peaks of long chains are below those of one level") {
  const TensorGraph graph = ChainOf(std::vector<int64_t>(200, 10));
  PlanRequest request = RequestOf("chen-recursive");
  request.budget.kind = Budget::Kind::kMin;
  const Plan recursive = *MakePlan(graph, request, {});
  request.algorithm = "chen-sqrt";
  CHECK(2 * recursive.figures.peak < MakePlan(graph, request, {})->figures.peak);
}

// Makes a chain of `length` nodes, and as many results without a gradient that only its last node
// reads: the i-th result crosses each cut after block i, which is length * (length - 1) / 2
// crossings in total.
TensorGraph ChainWithMasks(int length) {
  TensorGraphParts parts;
  const auto add_tensor = [&](TensorKind kind, bool requires_grad) {
    const auto id = static_cast<int64_t>(parts.tensors.size());
    parts.tensors.push_back({id, "t" + std::to_string(id), Bytes(8), kind, requires_grad, {}, {}});
    return TensorId(parts.tensors.size() - 1);
  };
  const auto add_node = [&](std::vector<TensorId> inputs, bool requires_grad) {
    Node node;
    node.file_id = static_cast<int64_t>(parts.nodes.size());
    node.inputs = std::move(inputs);
    node.outputs = {add_tensor(TensorKind::kActivation, requires_grad)};
    node.forward_cost = Cost(1);
    parts.nodes.push_back(node);
    return node.outputs[0];
  };
  const TensorId input = add_tensor(TensorKind::kInput, false);
  std::vector<TensorId> read = {input};
  TensorId last = input;
  for (int i = 0; i < length; ++i) {
    const TensorId mask = add_node({input}, false);
    last = add_node({last}, true);
    read.push_back(mask);
  }
  read[0] = last;
  parts.outputs = {add_node(read, true)};
  return *TensorGraph::Create(std::move(parts));
}

TEST_CASE("chen-recursive: results that wait across very many blocks are refused") {
  CHECK(MakePlan(ChainWithMasks(100), RequestOf("chen-recursive"), {}).ok());
  const Result<Plan> plan = MakePlan(ChainWithMasks(10'100), RequestOf("chen-recursive"), {});
  REQUIRE(!plan.ok());
  CHECK(plan.error().code == ErrorCode::kUnsupported);
  CHECK(plan.error().message.find("limited to 50000000") != std::string::npos);
}

TEST_CASE("chen-drop-cheap: the price of an operation by its name") {
  for (const char* op : {"Conv", "ConvTranspose", "Gemm", "MatMul", "Einsum", "LSTM", "GRU", "RNN",
                         "Attention", "Convolution2DFunction", "LinearFunction", "Conv+Relu"}) {
    CAPTURE(std::string(op));
    CHECK(PriceOf(op) == OpPrice::kCostly);
  }
  for (const char* op : {"BatchNormalization", "LayerNormalization", "Relu", "LeakyRelu", "Gelu",
                         "Sigmoid", "Tanh", "BatchNorm2d", "ReLU6", "SiLU"}) {
    CAPTURE(std::string(op));
    CHECK(PriceOf(op) == OpPrice::kNormOrActivation);
  }
  for (const char* op : {"MaxPool", "GlobalAveragePool", "Dropout", "Erf", "AvgPool2d"}) {
    CAPTURE(std::string(op));
    CHECK(PriceOf(op) == OpPrice::kOtherCheap);
  }
  for (const char* op : {"", "Add", "Concat", "Mul", "Softmax", "Interface"}) {
    CAPTURE(std::string(op));
    CHECK(PriceOf(op) == OpPrice::kUnknown);
  }
}

TEST_CASE("chen-drop-cheap: conv - bn - relu twice, and the same without names by cost") {
  const TensorGraph unnamed =
      GraphFromText("c1:4@10 -> b1:4@1 -> r1:4@1 -> c2:4@10 -> b2:4@1 -> r2:4@1 -> c3:2@10");
  TensorGraphParts parts = PartsOf(unnamed);
  int32_t i = 0;
  for (const char* op : {"Conv", "BatchNormalization", "Relu"}) {
    for (NodeId id(i++); id.index() < 7; id = NodeId(id.index() + 3)) parts.nodes[id].op = op;
  }
  const TensorGraph named = *TensorGraph::Create(std::move(parts));
  for (const TensorGraph* graph : {&unnamed, &named}) {
    const Plan plan = *MakePlan(*graph, RequestOf("chen-drop-cheap"), {});
    CHECK(plan.figures.paper.peak == Bytes(10));
    CHECK(plan.figures.paper.overhead == Cost(4));
    CHECK(plan.figures.overhead == Cost(4));
    CHECK(plan.figures.peak < plan.figures.baseline_peak);
    for (const int32_t conv : {0, 3, 6}) CHECK(plan.decisions[NodeId(conv)].recompute_count == 0);
  }
}

TEST_CASE("chen-drop-cheap: no costly operation is recomputed, on any graph") {
  for (uint64_t seed = 1; seed <= Instances(1000); ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    const TensorGraph graph = RandomTensorGraph(rng);
    const Plan plan = *MakePlan(graph, RequestOf("chen-drop-cheap"), {});
    for (const NodeId id : graph.nodes().ids()) {
      if (PriceOf(graph.node(id).op) == OpPrice::kCostly) {
        CHECK(plan.decisions[id].recompute_count == 0);
      }
    }
    CHECK(plan.figures.overhead <= plan.figures.paper.overhead);
  }
}

// In conv - bn - relu - pool - conv the experiment drops bn and relu, 4 bytes each; section 4.2
// drops the pooling's 1 byte as well.
TEST_CASE("chen-drop-bn-relu: pooling is kept, while chen-drop-cheap drops it") {
  TensorGraphParts parts =
      PartsOf(GraphFromText("c1:4@10 -> b1:4@1 -> r1:4@1 -> p1:1@1 -> c2:1@10"));
  int32_t i = 0;
  for (const char* op : {"Conv", "BatchNormalization", "Relu", "MaxPool", "Conv"}) {
    parts.nodes[NodeId(i++)].op = op;
  }
  const TensorGraph graph = *TensorGraph::Create(std::move(parts));
  const Plan bn_relu = *MakePlan(graph, RequestOf("chen-drop-bn-relu"), {});
  CHECK(bn_relu.figures.paper.peak == Bytes(4 + 1 + 1));
  CHECK(bn_relu.figures.paper.overhead == Cost(2));
  CHECK(bn_relu.figures.overhead == Cost(2));
  CHECK(bn_relu.decisions[NodeId(3)].recompute_count == 0);
  const Plan cheap = *MakePlan(graph, RequestOf("chen-drop-cheap"), {});
  CHECK(cheap.figures.paper.peak == Bytes(4 + 1));
  CHECK(cheap.figures.overhead == Cost(3));
  // Without names nothing is a normalisation or an activation.
  const TensorGraph unnamed = GraphFromText("a:4@10 -> b:4@1 -> c:4@10");
  CHECK(MakePlan(unnamed, RequestOf("chen-drop-bn-relu"), {})->figures.overhead == Cost(0));
}

TEST_CASE("geometric mean: the root, rounded down, also of products beyond 64 bits") {
  CHECK(GeometricMean(Bytes(0), Bytes(7)) == Bytes(0));
  CHECK(GeometricMean(Bytes(150), Bytes(10)) == Bytes(38));
  CHECK(GeometricMean(Bytes(16), Bytes(1)) == Bytes(4));
  const int64_t large = int64_t{1} << 56;
  CHECK(GeometricMean(Bytes(large), Bytes(large)) == Bytes(large));
  CHECK(GeometricMean(Bytes(large), Bytes(4)) == Bytes(int64_t{1} << 29));
}

namespace {

Plan PlanByCount(const TensorGraph& graph, int64_t segments = 0) {
  PlanRequest request;
  request.algorithm = "chen-count";
  if (segments > 0) request.setting = KnobSetting{"segments", segments};
  return *MakePlan(graph, request, {});
}

// Returns the last node of each segment, counted from 1, which is how Hong et al. write
// checkpoints.
std::vector<int64_t> EndsOf(const Plan& plan) {
  std::vector<int64_t> ends;
  for (const NodeId id : plan.decisions.ids()) {
    const bool goes_on = !ends.empty() && plan.decisions[id].segment + 1 == std::ssize(ends);
    if (!goes_on) ends.push_back(0);
    ends.back() = id.index() + 1;
  }
  return ends;
}

}  // namespace

// In Hong et al. 2024, Table 2, VGG-19 has 24 layers and AlexNet 15; ceil(sqrt) is 5 and 4.
TEST_CASE("chen-count: the checkpoint sets of Hong's Table 2, whatever the layers' sizes") {
  Rng rng(1);
  std::vector<int64_t> sizes(24);
  for (int64_t& size : sizes) size = rng.Between(1, 1000);
  CHECK(EndsOf(PlanByCount(ChainOf(sizes))) == std::vector<int64_t>{5, 10, 15, 20, 24});
  CHECK(EndsOf(PlanByCount(ChainOf(sizes), 5)) == std::vector<int64_t>{5, 10, 15, 20, 24});
  sizes.resize(15);
  CHECK(EndsOf(PlanByCount(ChainOf(sizes))) == std::vector<int64_t>{4, 8, 12, 15});
}

TEST_CASE(
    "chen-count: without a setting, every ceil(sqrt(n))-th layer and the last are checkpoints") {
  for (int64_t n = 1; n <= 150; ++n) {
    CAPTURE(n);
    int64_t step = 1;
    while (step * step < n) ++step;
    std::vector<int64_t> expected;
    for (int64_t end = step; end < n; end += step) expected.push_back(end);
    expected.push_back(n);
    CHECK(EndsOf(PlanByCount(ChainOf(std::vector<int64_t>(static_cast<size_t>(n), 1)))) ==
          expected);
  }
}

// ceil(24 / 7) = 4, but five segments of four would leave only four layers for two segments.
TEST_CASE("chen-count: there are as many segments as asked for") {
  const TensorGraph graph = ChainOf(std::vector<int64_t>(24, 10));
  CHECK(EndsOf(PlanByCount(graph, 7)) == std::vector<int64_t>{4, 8, 12, 16, 20, 23, 24});
  for (int64_t segments = 1; segments <= 24; ++segments) {
    CHECK(std::ssize(EndsOf(PlanByCount(graph, segments))) == segments);
  }
}

// Two segments of two layers keep b: x + y = 9 + 10. Keeping c would need 1 + 11.
TEST_CASE("chen-count: not optimal if layers differ in size") {
  const TensorGraph graph = ChainOf({1, 9, 1, 9});
  CHECK(PlanByCount(graph, 2).figures.paper.peak == Bytes(19));
  for (int64_t segments = 1; segments <= 4; ++segments) {
    CHECK(PlanByCount(graph, segments).figures.paper.peak >= Bytes(19));
  }
}

}  // namespace ckplan
