#include "lib/planning/algorithms/hong/step_prediction.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <utility>

#include "lib/base/rng.h"
#include "lib/planning/algorithms/hong/checkpoint_selection.h"
#include "lib/planning/algorithms/hong/layer_list.h"
#include "lib/planning/plan/assemble.h"
#include "lib/problem/schedule/lower.h"
#include "lib/testing/graph_text.h"
#include "lib/testing/random_graph.h"

namespace ckplan {
namespace {

using Values = std::vector<std::optional<Bytes>>;

Plan PlanOf(const TensorGraph& graph, const Strategy& strategy) {
  return AssemblePlan(graph, LowerStrategy(graph, strategy), SegmentsOf(graph, strategy));
}

Plan PlanOfCheckpoints(const TensorGraph& graph, const std::vector<size_t>& checkpoints) {
  LowerSetSequence sequence;
  sequence.segment_of =
      ListLayers(graph, VertexGraph(graph)).Cut(checkpoints, &sequence.segment_count);
  return PlanOf(graph, sequence);
}

Values ValuesOf(const std::vector<int64_t>& bytes) {
  Values values;
  for (const int64_t value : bytes) {
    values.push_back(value < 0 ? std::nullopt : std::optional(Bytes(value)));
  }
  return values;
}

std::string WhyNot(const TensorGraph& graph, const Plan& plan) {
  const Result<Values> values = PredictSteps(graph, plan);
  REQUIRE_FALSE(values.ok());
  CHECK(values.error().code == ErrorCode::kUnsupported);
  return values.error().message;
}

constexpr const char* kEndsElsewhere =
    "a segment ends elsewhere than at a vertex that splits the graph";
constexpr const char* kKeepsOtherwise =
    "the plan keeps or recomputes otherwise than from the end of a segment to the next";

}  // namespace

TEST_CASE("step prediction: a chain of four with one checkpoint inside, worked by hand") {
  // d = 4, 2, 1, 3; checkpoints d_0, d_2, d_3: segments {a} {b c} {d}.
  //   forward    d_0 = 4, then 4 + 2, 4 + 1, 4 + 1 + 3; no phase ends at the loss
  //   backward   of d_3: 4 + 1 kept, 3, buffer max(1) = 1: 9; b is recomputed, no phase ends;
  //              of d_2: 4 kept, 2 + 1, buffer max(4, 2) = 4: 11; of d_1: 4 + 2 + 4 = 10; d_0 = 4
  const TensorGraph graph = GraphFromText("a:4 -> b:2 -> c:1 -> d:3");
  const Plan plan = PlanOfCheckpoints(graph, {0, 2, 3});
  CHECK(*PredictSteps(graph, plan) == ValuesOf({4, 6, 5, 8, -1, 9, -1, 11, 10, 4}));
}

TEST_CASE("step prediction: inputs are d_0, and not part of the values") {
  // Without d_0 = 4, which is now the input x, every value of the list is lower by 4.
  TensorGraphParts parts = PartsOf(GraphFromText("b:2 -> c:1 -> d:3"));
  Tensor input;
  input.file_id = 3;
  input.name = "x";
  input.bytes = Bytes(4);
  input.kind = TensorKind::kInput;
  input.requires_grad = false;
  parts.nodes[NodeId(0)].inputs = {parts.tensors.push_back(std::move(input))};
  const TensorGraph graph = TensorGraph::Create(std::move(parts)).value();
  const Plan plan = PlanOfCheckpoints(graph, {0, 2, 3});
  CHECK(*PredictSteps(graph, plan) == ValuesOf({2, 1, 4, -1, 5, -1, 7, 6}));
}

TEST_CASE("step prediction: the largest value is Eq. 12, on any graph with checkpoints") {
  int with_checkpoints = 0;
  for (uint64_t seed = 1; seed <= 1000; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    RandomGraphOptions options;
    options.nodes = static_cast<int>(rng.Between(1, 14));
    options.max_node_inputs = static_cast<int>(rng.Between(1, 3));
    const TensorGraph graph = RandomTensorGraph(rng, options);
    const LayerList list = ListLayers(graph, VertexGraph(graph));
    std::vector<size_t> checkpoints = {0};
    for (const size_t candidate : list.candidates) {
      const bool is_inner = candidate > 0 && candidate + 1 < list.sizes.size();
      if (is_inner && rng.Chance(50)) checkpoints.push_back(candidate);
    }
    if (list.sizes.size() > 1) checkpoints.push_back(list.sizes.size() - 1);
    if (checkpoints.size() > 2) ++with_checkpoints;

    const Result<Values> values = PredictSteps(graph, PlanOfCheckpoints(graph, checkpoints));
    REQUIRE(values.ok());
    Bytes largest;
    for (const auto& value : *values) largest = std::max(largest, value.value_or(Bytes(0)));
    largest += graph.constants().inputs;
    const Bytes objective = DynamicObjective(list, checkpoints);
    CHECK(largest <= objective);
    // An empty end has no step that could carry its value.
    if (!list.nodes.back().is_none() && list.sizes.size() > 1) CHECK(largest == objective);
  }
  CHECK(with_checkpoints > 200);
}

TEST_CASE("step prediction: plans that are not checkpoints on the chain have no values") {
  // b and c are parallel, between a and d.
  const TensorGraph block = GraphFromText("a:1 -> b:2 -> d:3; a -> c:4 -> d");
  LowerSetSequence inside;
  inside.segment_of = IdVector<NodeId, int32_t>(std::vector<int32_t>{0, 0, 1, 1});
  inside.segment_count = 2;
  CHECK(WhyNot(block, PlanOf(block, inside)) == kEndsElsewhere);

  // A kept set has a single segment, the last, in which nothing may be recomputed.
  const TensorGraph chain = GraphFromText("a:4 -> b:2 -> c:1 -> d:3");
  KeptSet kept{IdVector<NodeId, bool>(4, true)};
  kept.is_kept[NodeId(1)] = false;
  CHECK(WhyNot(chain, PlanOf(chain, kept)) == kKeepsOtherwise);

  // b is kept inside the segment {b, c}.
  const TensorGraph five = GraphFromText("a:4 -> b:2 -> c:1 -> d:3 -> e:5");
  Plan extra = PlanOfCheckpoints(five, {0, 1, 2, 4});
  extra.decisions[NodeId(2)].segment = 1;
  CHECK(WhyNot(five, extra) == kKeepsOtherwise);

  // These results are recomputed again at a deeper level.
  const TensorGraph longer = GraphFromText("a:1 -> b:1 -> c:1 -> d:1 -> e:1 -> f:1 -> g:1 -> h:1");
  RecursiveSplit split{IdVector<NodeId, int32_t>(8), 8, 1};
  for (const NodeId id : longer.nodes().ids()) split.block_of[id] = id.index();
  CHECK(WhyNot(longer, PlanOf(longer, split)) == kKeepsOtherwise);
}

TEST_CASE("step prediction: keeping everything is one segment") {
  // C = {d_0, d_2}: the backward of d_2 needs 4 + 2 + 1 and the buffer max(4, 2), that of d_1 needs
  // 4 + 2 + 4.
  const TensorGraph graph = GraphFromText("a:4 -> b:2 -> c:1");
  const Plan plan = PlanOf(graph, KeptSet{IdVector<NodeId, bool>(3, true)});
  CHECK(*PredictSteps(graph, plan) == ValuesOf({4, 6, 5, -1, 11, 10, 4}));
}

}  // namespace ckplan
