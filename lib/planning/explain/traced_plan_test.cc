#include "lib/planning/explain/traced_plan.h"

#include <doctest/doctest.h>

#include "lib/testing/graph_text.h"
#include "lib/testing/instances.h"
#include "lib/testing/plans/random_plan.h"

namespace ckplan {

TEST_CASE("plan facts: a chain whose middle is recomputed, worked by hand") {
  // b runs again before backward of c. The peak, 12, is at backward of b: the kept a, 4, the second
  // b, 2, and the gradients of b and a, 6.
  const TensorGraph graph = GraphFromText("a:4@1 -> b:2@3 -> c:1@1");
  const Plan plan = PlanOfKept(graph, IdVector<NodeId, bool>(std::vector<bool>{true, false, true}));
  const PlanFacts facts = FactsOf(graph, plan);
  CHECK(facts.run_twice == 1);
  CHECK(facts.run_more_often == 0);
  REQUIRE(facts.groups.size() == 1);
  CHECK(facts.groups[0].node_count == 1);
  CHECK(facts.groups[0].outputs == Bytes(2));
  CHECK(facts.groups[0].overhead == Cost(3));
  CHECK(facts.peak_step == "backward of b");
  CHECK(facts.kept == Bytes(4));
  CHECK(facts.recomputed == Bytes(2));
  CHECK(facts.passing == Bytes(0));
  CHECK(facts.gradients == Bytes(6));
  CHECK(plan.figures.peak == Bytes(12));
}

TEST_CASE("plan facts: the kinds of memory add up to the peak of any plan") {
  for (uint64_t seed = 1; seed <= Instances(200); ++seed) {
    CAPTURE(seed);
    const RandomPlanned random(seed);
    const PlanFacts facts = random.joint != nullptr ? FactsOf(*random.joint, random.plan)
                                                    : FactsOf(*random.forward, random.plan);
    CHECK(facts.kept + facts.recomputed + facts.passing + facts.gradients + facts.workspace ==
          random.plan.figures.peak);
    int64_t recomputed_nodes = 0;
    for (const RecomputedGroup& group : facts.groups) recomputed_nodes += group.node_count;
    CHECK(recomputed_nodes == facts.run_twice + facts.run_more_often);
  }
}

}  // namespace ckplan
