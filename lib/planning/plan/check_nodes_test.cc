#include <doctest/doctest.h>

#include "lib/base/rng.h"
#include "lib/planning/plan/check_replay.h"
#include "lib/problem/schedule/canonical_strategy.h"
#include "lib/problem/schedule/lower.h"
#include "lib/problem/schedule/simulate.h"
#include "lib/testing/graph_text.h"
#include "lib/testing/random_graph.h"

namespace ckplan {
namespace {

Result<Replayed> ReplayOf(const TensorGraph& graph, const Schedule& schedule) {
  ReplayOptions options;
  options.alignment = 1;
  return ReplayNodes(graph, schedule, options);
}

TEST_CASE("check: backward by input needs the memory that the simulator says") {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    const TensorGraph graph = WithBackwardByInput(RandomTensorGraph(rng));
    KeptSet kept{IdVector<NodeId, bool>(graph.nodes().size())};
    LowerSetSequence sequence;
    for (const NodeId id : graph.nodes().ids()) {
      kept.is_kept[id] = rng.Chance(50);
      if (id.index() > 0 && rng.Chance(30)) ++sequence.segment_count;
      sequence.segment_of.push_back(sequence.segment_count);
    }
    ++sequence.segment_count;
    for (const Schedule& schedule :
         {LowerStrategy(graph, kept), LowerWithoutLiveness(graph, kept),
          LowerStrategy(graph, sequence), LowerWithoutLiveness(graph, sequence)}) {
      const auto replayed = ReplayOf(graph, schedule);
      REQUIRE_MESSAGE(replayed.ok(), replayed.error().message);
      CHECK(replayed->slab.highest() == Simulator(graph).Run(schedule)->peak);
    }
  }
}

TEST_CASE("check: by input without liveness, each gradient is freed once and not too early") {
  const TensorGraph chain = WithBackwardByInput(ChainOf({10, 10}));
  const Schedule whole =
      LowerWithoutLiveness(chain, LowerSetSequence{IdVector<NodeId, int32_t>(2), 1});
  REQUIRE(ReplayOf(chain, whole).ok());
  const auto fault_of = [&](auto change) {
    Schedule schedule = whole;
    change(&schedule.steps);
    return ReplayOf(chain, schedule).error().message;
  };
  CHECK(fault_of([](auto* steps) { steps->pop_back(); }) ==
        "the gradient of \"n1\" is still in memory at the end");
  CHECK(fault_of([](auto* steps) { steps->push_back(steps->back()); }) ==
        "step 9: the gradient of \"n1\" is freed but not in memory");
  CHECK(fault_of([](auto* steps) {
          steps->insert(steps->begin() + 4, steps->back());
          steps->pop_back();
        }) == "step 5: the gradient of \"n1\" is read but not in memory");
  Schedule by_node = whole;
  CHECK(ReplayOf(ChainOf({10, 10}), by_node).error().message ==
        "step 7: a free of a gradient, but the schedule frees gradients after their last read");
}

}  // namespace
}  // namespace ckplan
