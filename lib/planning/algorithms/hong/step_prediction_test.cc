#include "lib/planning/algorithms/hong/step_prediction.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <utility>

#include "lib/base/rng.h"
#include "lib/planning/algorithms/hong/checkpoint_selection.h"
#include "lib/planning/plan/assemble.h"
#include "lib/problem/schedule/lower.h"
#include "lib/problem/schedule/timeline.h"
#include "lib/testing/graph_text.h"
#include "lib/testing/random_graph.h"

namespace ckplan {

// Compares the prediction of Hong et al. 2024 with the timeline of the same plan.

namespace {

// Makes a chain whose operations read their input in backward but not their output, as convolutions
// do.
TensorGraph ConvolutionChain(const std::vector<int64_t>& sizes) {
  std::vector<TextVertex> vertices;
  std::vector<std::pair<int32_t, int32_t>> edges;
  for (const int64_t size : sizes) {
    const auto i = static_cast<int32_t>(vertices.size());
    if (i > 0) edges.emplace_back(i - 1, i);
    vertices.push_back({std::to_string(i), Bytes(size), Cost(1)});
  }
  TensorGraphParts parts = PartsOf(GraphFromVertices("chain", vertices, edges));
  for (Node& node : parts.nodes) node.backward_reads = node.inputs;
  return TensorGraph::Create(std::move(parts)).value();
}

struct SizedChain {
  TensorGraph graph;
  LayerList list;
  std::vector<size_t> checkpoints;  // Random positions, with both ends.
};

SizedChain RandomChain(Rng& rng, bool has_equal_sizes) {
  const int64_t length = rng.Between(2, 14);
  const int64_t size = rng.Between(1, 9);
  std::vector<int64_t> sizes;
  for (int64_t i = 0; i < length; ++i) sizes.push_back(has_equal_sizes ? size : rng.Between(1, 9));
  TensorGraph graph = ConvolutionChain(sizes);
  LayerList list = ListLayers(graph, VertexGraph(graph));
  std::vector<size_t> checkpoints = {0};
  for (size_t i = 1; i + 1 < sizes.size(); ++i) {
    if (rng.Chance(40)) checkpoints.push_back(i);
  }
  checkpoints.push_back(sizes.size() - 1);
  return {std::move(graph), std::move(list), std::move(checkpoints)};
}

Schedule ScheduleOf(const SizedChain& chain) {
  LowerSetSequence sequence;
  sequence.segment_of = chain.list.Cut(chain.checkpoints, &sequence.segment_count);
  return LowerStrategy(chain.graph, sequence);
}

// Returns the bytes that are still live after the step.
Bytes LiveAfter(const Timeline& timeline, int32_t step) {
  Bytes live;
  for (const Buffer& buffer : timeline.buffers) {
    if (buffer.first_step <= step && buffer.last_step > step) live += buffer.bytes;
  }
  return live;
}

}  // namespace

TEST_CASE("training phases: the largest phase of backward is Eq. 12") {
  Rng rng(20260502);
  for (int round = 0; round < 2000; ++round) {
    CAPTURE(round);
    const SizedChain chain = RandomChain(rng, false);
    const std::vector<Bytes> curve = PredictTrainingPhases(chain.list, chain.checkpoints);
    const size_t last = chain.list.sizes.size() - 1;
    REQUIRE(curve.size() == 2 * last + 2);
    const Bytes peak =
        *std::max_element(curve.begin() + static_cast<std::ptrdiff_t>(last) + 1, curve.end() - 1);
    CHECK(peak == DynamicObjective(chain.list, chain.checkpoints));
    CHECK(*std::max_element(curve.begin(), curve.end()) == peak);
  }
}

TEST_CASE("training phases: forward phases are what the timeline holds after each step") {
  Rng rng(20260503);
  for (int round = 0; round < 500; ++round) {
    CAPTURE(round);
    const SizedChain chain = RandomChain(rng, false);
    const std::vector<Bytes> curve = PredictTrainingPhases(chain.list, chain.checkpoints);
    const Timeline timeline = BuildTimeline(chain.graph, ScheduleOf(chain));
    const size_t last_cut = chain.checkpoints[chain.checkpoints.size() - 2];
    // The paper drops the last segment as well; our schedules keep it, since its backward comes at
    // once.
    for (size_t i = 1; i <= last_cut; ++i) {
      CHECK(LiveAfter(timeline, static_cast<int32_t>(i)) == curve[i]);
    }
  }
}

TEST_CASE("training phases: backward phases bound the timeline, and are exact for equal layers") {
  Rng rng(20260504);
  for (int round = 0; round < 1000; ++round) {
    CAPTURE(round);
    const bool has_equal_sizes = round % 2 == 0;
    const SizedChain chain = RandomChain(rng, has_equal_sizes);
    const std::vector<Bytes> curve = PredictTrainingPhases(chain.list, chain.checkpoints);
    const Schedule schedule = ScheduleOf(chain);
    const Timeline timeline = BuildTimeline(chain.graph, schedule);
    const size_t last = chain.list.sizes.size() - 1;
    for (size_t step = 0; step < schedule.steps.size(); ++step) {
      if (schedule.steps[step].kind != StepKind::kBackward) continue;
      const auto i = static_cast<size_t>(schedule.steps[step].index);
      if (i == 0) continue;  // d_0 is not a layer.
      const Bytes predicted = curve[2 * last + 1 - i];
      CAPTURE(i);
      CHECK(timeline.step_bytes[step] <= predicted);
      if (has_equal_sizes) CHECK(timeline.step_bytes[step] == predicted);
    }
  }
}

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

constexpr const char* kEndsElsewhere = "a segment does not end at a vertex that splits the graph";
constexpr const char* kKeepsOtherwise = "the plan does not keep exactly the end of each segment";

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
