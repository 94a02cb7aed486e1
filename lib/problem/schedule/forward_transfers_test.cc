#include "lib/problem/schedule/forward_transfers.h"

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "lib/problem/schedule/lower.h"
#include "lib/problem/schedule/simulate.h"
#include "lib/problem/schedule/timeline.h"
#include "lib/testing/random_graph.h"
#include "lib/testing/random_moves.h"

namespace ckplan {
namespace {

// A graph whose in-place pairs all name one output of their node, as those of models do.
TensorGraph GraphLikeOfModel(Rng& rng) {
  RandomGraphOptions options;
  options.nodes = static_cast<int>(rng.Between(2, 12));
  TensorGraphParts parts = PartsOf(RandomTensorGraph(rng, options));
  for (Node& node : parts.nodes) {
    std::erase_if(node.in_place, [&](const InPlacePair& pair) {
      return pair.output != node.in_place.front().output;
    });
  }
  return TensorGraph::Create(std::move(parts)).value();
}

bool MovesAGradient(const TensorGraph& graph, const Schedule& schedule) {
  for (const Step& step : schedule.steps) {
    if (IsGradientTransfer(graph, step)) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("forward transfers: both forms need the same memory, at every step") {
  int compared = 0;
  int with_gradients = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    const TensorGraph graph = GraphLikeOfModel(rng);
    const Expansion expansion = ExpandTensorGraph(graph);
    const Link link = RandomLink(rng);
    const TrainingStep joint =
        TrainingStep(expansion.graph, graph, expansion.step_of).WithLink(&link);
    KeptSet kept{IdVector<NodeId, bool>(graph.nodes().size())};
    for (const NodeId id : graph.nodes().ids()) kept.is_kept[id] = rng.Chance(60);
    const std::vector<OpId> runs = RunsOf(expansion, LowerStrategy(graph, kept));
    Schedule schedule;
    Result<Schedule> forward = schedule;
    Result<Simulation> simulated = Simulation();
    for (int tries = 0; tries < 40; ++tries) {
      schedule = WithRandomMoves(rng, expansion.graph, runs);
      simulated = Simulator(joint).Run(schedule);
      if (!simulated.ok()) continue;
      forward = InForwardForm(graph, expansion, schedule);
      if (forward.ok()) break;
      CHECK(forward.error().message.find("do not have in memory") != std::string::npos);
    }
    if (!simulated.ok() || !forward.ok()) continue;
    const Timeline timeline = BuildTimeline(graph, *forward);
    CHECK(timeline.step_bytes == BuildTimeline(joint, schedule).step_bytes);
    CHECK(timeline.peak == simulated->peak);
    compared += HasTransfers(*forward) ? 1 : 0;
    with_gradients += MovesAGradient(graph, *forward) ? 1 : 0;
  }
  CHECK(compared > 50);
  CHECK(with_gradients > 10);
}

}  // namespace ckplan
