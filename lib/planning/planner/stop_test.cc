// Stops at any point of planning. Polls are counted, so that each run stops at the very same place.
#include "lib/base/stop.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "lib/planning/plan/check.h"
#include "lib/planning/planner/planner.h"
#include "lib/testing/graph_text.h"
#include "lib/testing/instances.h"

namespace ckplan {
namespace {

constexpr int kNodes = 60;

// A chain with a branch at every third vertex, so that every algorithm has something to decide.
TensorGraph BranchedChain() {
  std::vector<TextVertex> vertices;
  std::vector<std::pair<int32_t, int32_t>> edges;
  for (int32_t i = 0; i < kNodes; ++i) {
    vertices.push_back({std::string("n").append(std::to_string(i)), Bytes(1 + i % 7), Cost(1)});
    if (i > 0) edges.emplace_back(i - 1, i);
    if (i > 2 && i % 3 == 0) edges.emplace_back(i - 3, i);
  }
  return GraphFromVertices("branched chain", vertices, edges);
}

PlanRequest MinPeakBy(const SolverInfo& info) {
  PlanRequest request;
  request.algorithm = std::string(info.name);
  request.budget.kind = Budget::Kind::kMin;
  return request;
}

struct StoppedRun {
  Result<Plan> plan = MakeError(ErrorCode::kInternal, "not made yet");
  int64_t polls = 0;
};
// Plans, and requests at the given poll that everything ends, or that searches end.
StoppedRun PlanUntil(const TensorGraph& graph, const SolverInfo& info, int64_t last_poll,
                     bool ends_everything) {
  StoppedRun run;
  std::stop_source everything;
  std::stop_source searches;
  const StopScope scope(everything.get_token(), [&](int64_t) {
    if (++run.polls == last_poll) (ends_everything ? everything : searches).request_stop();
  });
  run.plan = MakePlan(graph, MinPeakBy(info), {searches.get_token()});
  return run;
}

StoppedRun PlanToTheEnd(const TensorGraph& graph, const SolverInfo& info) {
  return PlanUntil(graph, info, -1, true);
}

// A run is stopped after each twentieth of its polls. With sanitizers, it is stopped after each
// quarter, since this would otherwise be the longest of the planner's tests.
constexpr int kParts = kHasSanitizers ? 4 : 20;

TEST_CASE("every algorithm: it asks whether to stop while it works on each node") {
  const TensorGraph graph = BranchedChain();
  for (const SolverInfo& info : AllSolvers()) {
    CAPTURE(std::string(info.name));
    const StoppedRun run = PlanToTheEnd(graph, info);
    if (!run.plan.ok()) continue;  // Too large a graph for it.
    // Building the problem, ordering the steps, simulating, placing and checking all poll for a
    // stop.
    CHECK(run.polls > 10 * kNodes);
  }
}

TEST_CASE("every algorithm: wherever everything is to end, it ends there, without a plan") {
  const TensorGraph graph = BranchedChain();
  for (const SolverInfo& info : AllSolvers()) {
    CAPTURE(std::string(info.name));
    const StoppedRun whole = PlanToTheEnd(graph, info);
    for (int64_t part = 0; whole.plan.ok() && part <= kParts; ++part) {
      const int64_t last = std::max<int64_t>(1, whole.polls * part / kParts);
      CAPTURE(last);
      const StoppedRun run = PlanUntil(graph, info, last, true);
      CHECK(run.polls <= last + 1);  // A search may poll once more before it passes the stop on.
      CHECK(run.plan.error().code == ErrorCode::kTimeout);
    }
  }
}

TEST_CASE("every algorithm: a stop of its search leaves the best plan so far, or none") {
  const TensorGraph graph = BranchedChain();
  int cut_short = 0;
  for (const SolverInfo& info : AllSolvers()) {
    CAPTURE(std::string(info.name));
    const StoppedRun whole = PlanToTheEnd(graph, info);
    for (int64_t part = 0; whole.plan.ok() && part <= kParts; ++part) {
      const int64_t last = std::max<int64_t>(1, whole.polls * part / kParts);
      CAPTURE(last);
      const StoppedRun run = PlanUntil(graph, info, last, false);
      if (!run.plan.ok()) {
        CHECK(run.plan.error().code == ErrorCode::kTimeout);
        continue;
      }
      CHECK(CheckPlan(graph, *run.plan).empty());
      cut_short += run.plan->figures.guarantee.starts_with(kStoppedEarly);
    }
  }
  CHECK(cut_short > kParts);
}

TEST_CASE("stop: scopes may be nested, and any of them stops") {
  std::stop_source outer;
  const StopScope outer_scope(outer.get_token());
  const StopScope inner_scope({});
  CHECK_NOTHROW(PollStop());
  outer.request_stop();
  CHECK_THROWS_AS(PollStop(), Stopped);
  const StopsSuspended suspended;
  CHECK_NOTHROW(PollStop());
}

}  // namespace
}  // namespace ckplan
