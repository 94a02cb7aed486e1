// Compares the prediction of Hong et al. 2024 with the timeline of the same plan.
#include "lib/planning/algorithms/hong/training_phases.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <utility>

#include "lib/base/rng.h"
#include "lib/planning/algorithms/hong/checkpoint_selection.h"
#include "lib/problem/schedule/lower.h"
#include "lib/problem/schedule/timeline.h"
#include "lib/testing/graph_text.h"

namespace ckplan {
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

struct Chain {
  TensorGraph graph;
  LayerList list;
  std::vector<size_t> checkpoints;  // Random positions, with both ends.
};

Chain RandomChain(Rng& rng, bool has_equal_sizes) {
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

Schedule ScheduleOf(const Chain& chain) {
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
    const Chain chain = RandomChain(rng, false);
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
    const Chain chain = RandomChain(rng, false);
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
    const Chain chain = RandomChain(rng, has_equal_sizes);
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

}  // namespace ckplan
