#include <doctest/doctest.h>

#include "cli/ckbench/commands.h"
#include "lib/files/emit/json_graph.h"
#include "lib/planning/plan/solver.h"
#include "lib/planning/planner/registry.h"
#include "lib/problem/schedule/lower.h"
#include "lib/problem/schedule/simulate.h"

namespace ckplan {
namespace {

// Returns the peak of a plan for the graph after the graph was written and read, as ckplan plans
// it.
Bytes PlannedPeak(const TensorGraph& built, const char* algorithm) {
  const TensorGraph graph = ReadGraphJson(WriteGraphJson(built), "graph.json").value();
  CHECK(graph == built);
  const Problem problem(graph);
  const auto solver = (*FindSolver(algorithm))->prepare(problem, SolveLimits{}).value();
  const SolveOutcome outcome = solver->Solve(solver->knob().preset, SolveLimits{}).value();
  return Simulator(graph).Run(LowerStrategy(graph, outcome.strategy)).value().peak;
}

}  // namespace

TEST_CASE("ckbench graph: Chen's algorithms read and plan the graph that it writes") {
  struct Row {
    const char* network;
    const char* algorithm;
  };
  for (const Row& row : {Row{"resnet-200", "chen-search"}, Row{"lstm-16", "chen-frontier"}}) {
    CAPTURE(row.network);
    const TensorGraph graph = ChenNetwork(row.network).value();
    CHECK(2 * PlannedPeak(graph, row.algorithm) < PlannedPeak(graph, "keep-all"));
  }
}

TEST_CASE("ckbench graph: other names and numbers are refused") {
  for (const char* name : {"", "vgg", "resnet-", "resnet-13", "resnet-10001", "lstm-0", "lstm-x",
                           "resnet-99999999999999999999"}) {
    CAPTURE(name);
    CHECK(ChenNetwork(name).error().code == ErrorCode::kUsage);
  }
  CHECK(ChenNetwork("resnet-14").ok());
}

}  // namespace ckplan
