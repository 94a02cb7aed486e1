#include "lib/planning/explain/what_if.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "lib/base/rng.h"
#include "lib/planning/plan/assemble.h"
#include "lib/problem/schedule/simulate.h"
#include "lib/problem/schedule/training_step.h"
#include "lib/testing/instances.h"
#include "lib/testing/plans/random_plan.h"
#include "lib/testing/random_graph.h"
#include "lib/testing/random_joint_graph.h"

namespace ckplan {
namespace {

// The only version of a node's only output in a plan that keeps everything.
int32_t VersionOf(const TracedPlan& traced, TensorId tensor) {
  return traced.versions_in[tensor].front();
}

// The last step up to the loss that makes or reads the version.
int32_t LastForwardUse(const TracedPlan& traced, int32_t version) {
  int32_t last = traced.version(version).made_at;
  for (const int32_t read : traced.reads[static_cast<size_t>(version)]) {
    if (read <= static_cast<int32_t>(traced.timeline.loss_step)) last = std::max(last, read);
  }
  return last;
}

// A plan with another schedule, complete enough for TracePlan.
Plan WithSchedule(Plan plan, Schedule schedule) {
  plan.schedule = std::move(schedule);
  return plan;
}

}  // namespace

TEST_CASE("what if: freeing a tensor of keep-all equals keeping all others, and the reverse") {
  int64_t freed = 0;
  for (uint64_t seed = 0; seed < Instances(60); ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    const TensorGraph graph = RandomDag(rng, 9, 30, 20, 10);
    const TrainingStep planned(graph);
    const Plan keep_all = KeepAllPlan(graph);
    const TracedPlan traced = TracePlan(planned, keep_all);
    for (const NodeId node : graph.nodes().ids()) {
      CAPTURE(node.index());
      IdVector<NodeId, bool> is_kept(graph.nodes().size(), true);
      is_kept[node] = false;
      const Plan others = PlanOfKept(graph, is_kept);
      const int32_t version = VersionOf(traced, graph.node(node).outputs.front());
      const auto schedule = ReleaseAfter(traced, version, LastForwardUse(traced, version));
      REQUIRE(schedule.has_value());
      // At the start of the backward pass, the lowering keeps what would otherwise run again at
      // once.
      if (others.schedule == keep_all.schedule) continue;
      CHECK(schedule->steps == others.schedule.steps);
      ++freed;
      const TracedPlan back = TracePlan(planned, others);
      CHECK(KeepInstead(back, back.versions_in[graph.node(node).outputs.front()].back()).steps ==
            keep_all.schedule.steps);
    }
  }
  CHECK(freed > Instances(100));
}

TEST_CASE("what if: a freed tensor is gone, and the schedule is a training step") {
  int64_t freed = 0, refused = 0, kept = 0;
  for (uint64_t seed = 0; seed < Instances(400); ++seed) {
    CAPTURE(seed);
    const RandomPlanned random(seed);
    const TracedPlan traced = TracePlan(*random.graph, random.plan);
    for (size_t v = 0; v < traced.timeline.versions.size(); ++v) {
      CAPTURE(v);
      const auto version = static_cast<int32_t>(v);
      const Version& own = traced.version(version);
      if (random.graph->StorageOf(own.tensor) != own.tensor) continue;
      const auto schedule = ReleaseAfter(traced, version, own.made_at);
      refused += schedule ? 0 : 1;
      if (!schedule) continue;
      ++freed;
      REQUIRE(Simulator(*random.graph).Run(*schedule).ok());
      const Plan changed = WithSchedule(random.plan, *schedule);
      const TracedPlan after = TracePlan(*random.graph, changed);
      const Version& same = after.version(version);
      REQUIRE(same.tensor == own.tensor);
      REQUIRE(same.made_at == own.made_at);
      // The last version of a result stays to the end of any plan.
      const bool stays = same.last_read == own.made_at && after.until[v] > own.made_at;
      if (!stays) CHECK(after.until[v] == own.made_at);
      if (!traced.has_run[static_cast<size_t>(own.made_at)]) continue;
      const Schedule without = KeepInstead(traced, version);
      const Result<Simulation> measured = Simulator(*random.graph).Run(without);
      REQUIRE(measured.ok());
      CHECK(measured->overhead <= random.plan.figures.overhead);
      ++kept;
    }
  }
  CHECK(freed > Instances(1000));
  CHECK(refused > Instances(50));
  CHECK(kept > Instances(200));
}

}  // namespace ckplan
