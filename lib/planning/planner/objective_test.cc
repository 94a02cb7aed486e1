// Tests which of the two objectives of the dynamic programs a plan is made for.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "lib/base/rng.h"
#include "lib/planning/plan/solver.h"
#include "lib/planning/planner/planner.h"
#include "lib/problem/schedule/simulate.h"
#include "lib/testing/random_graph.h"

namespace ckplan {
namespace {

const Budget kLeast{Budget::Kind::kMin, Bytes(0), 0};

Result<Plan> PlanFor(const TensorGraph& graph, Objective objective, Budget budget,
                     const SolveLimits& limits = {}) {
  PlanRequest request;
  // exact-dp would be no example: its candidates include plans of approx-dp for both objectives.
  request.algorithm = "approx-dp";
  request.objective = objective;
  request.budget = budget;
  return MakePlan(graph, request, limits);
}

TensorGraph SmallGraph(uint64_t seed) {
  Rng rng(seed);
  RandomGraphOptions options;
  options.nodes = static_cast<int>(rng.Between(3, 12));
  return RandomTensorGraph(rng, options);
}

}  // namespace

TEST_CASE("objective: auto is the time-centric plan, or else the memory-centric one") {
  int by_memory = 0;
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    CAPTURE(seed);
    const TensorGraph graph = SmallGraph(seed);
    const Plan least_by_time = *PlanFor(graph, Objective::kTime, kLeast);
    const Plan least_by_memory = *PlanFor(graph, Objective::kMemory, kLeast);
    const Plan least = *PlanFor(graph, Objective::kAuto, kLeast);
    CHECK(least.figures.peak == std::min(least_by_time.figures.peak, least_by_memory.figures.peak));
    const int64_t range = (KeepAllPeak(graph) - least.figures.peak).count();
    for (const int64_t eighths : {-1, 0, 1, 2, 4, 8}) {
      const Budget budget = Budget::Of(
          eighths < 0 ? least.figures.peak - Bytes(1)
                      : least.figures.peak + Bytes(std::max<int64_t>(0, range) * eighths / 8));
      const Result<Plan> either = PlanFor(graph, Objective::kAuto, budget);
      const Result<Plan> time = PlanFor(graph, Objective::kTime, budget);
      const Result<Plan> memory = PlanFor(graph, Objective::kMemory, budget);
      REQUIRE(either.ok() == (eighths >= 0));
      if (!either.ok()) {
        const std::string named = either.error().remedy.settings.front().value;
        CHECK(named == std::to_string(least.figures.peak.count()));
        continue;
      }
      const Plan& expected = time.ok() ? *time : *memory;
      CHECK(either->request.objective == expected.request.objective);
      CHECK(either->figures.peak == expected.figures.peak);
      CHECK(either->figures.overhead == expected.figures.overhead);
      CHECK(either->schedule.steps == expected.schedule.steps);
      by_memory += time.ok() ? 0 : 1;
    }
  }
  CHECK(by_memory > 10);
}

TEST_CASE("objective: without a budget on the peak auto is the time-centric plan") {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const TensorGraph graph = SmallGraph(seed);
    const Plan plan = *PlanFor(graph, Objective::kAuto, {});
    CHECK(plan.request.objective == Objective::kTime);
    CHECK(plan.figures.overhead == PlanFor(graph, Objective::kTime, {})->figures.overhead);
  }
}

TEST_CASE("objective: a stop leaves the plan that there is, and says that it is one") {
  const TensorGraph graph = SmallGraph(1);
  std::stop_source stop;
  stop.request_stop();
  const Result<Plan> plan = PlanFor(graph, Objective::kAuto, kLeast, {stop.get_token()});
  if (plan.ok()) CHECK(plan->figures.guarantee.starts_with(kStoppedEarly));
  if (!plan.ok()) CHECK(plan.error().code == ErrorCode::kTimeout);
}

}  // namespace ckplan
