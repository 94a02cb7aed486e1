#include "lib/planning/algorithms/baselines/baselines.h"

#include <utility>

#include "lib/planning/plan/assemble.h"
#include "lib/planning/plan/fixed_plan.h"

namespace ckplan {

namespace {

class KeepAllRuns : public PreparedRunSolver {
 public:
  explicit KeepAllRuns(const JointGraph& graph) : graph_(graph) {}
  Knob knob() const override { return {}; }

  Result<RunOutcome> Solve(int64_t, const SolveLimits&) override {
    const bool is_optimal = MinOverhead(graph_) == Cost(0);
    return RunOutcome{OwnOrder(graph_), is_optimal,
                      is_optimal
                          ? "optimal: nothing runs twice"
                          : "nothing runs twice, but operations that no result needs run too"};
  }

 private:
  const JointGraph& graph_;
};

}  // namespace

Result<std::unique_ptr<PreparedSolver>> PrepareKeepAll(const Problem& problem, const SolveLimits&) {
  SolveOutcome outcome;
  outcome.strategy = KeptSet{IdVector<NodeId, bool>(problem.vertices.size(), true)};
  outcome.paper = {std::nullopt, problem.vertices.total_memory(), Cost(0)};
  outcome.is_optimal = true;
  outcome.guarantee = "optimal: nothing is recomputed";
  return std::unique_ptr<PreparedSolver>(new FixedPlanSolver(std::move(outcome)));
}

Result<std::unique_ptr<PreparedRunSolver>> PrepareKeepAllRuns(const JointGraph& graph,
                                                              const SolveLimits&) {
  return std::unique_ptr<PreparedRunSolver>(new KeepAllRuns(graph));
}

Result<std::unique_ptr<PreparedSolver>> PrepareRecomputeAll(const Problem& problem,
                                                            const SolveLimits&) {
  SolveOutcome outcome;
  outcome.strategy = KeptSet{IdVector<NodeId, bool>(problem.vertices.size(), false)};
  outcome.paper = {std::nullopt, 2 * problem.vertices.total_memory(),
                   problem.vertices.total_time()};
  outcome.guarantee = "nothing is kept from forward for backward";
  return std::unique_ptr<PreparedSolver>(new FixedPlanSolver(std::move(outcome)));
}

}  // namespace ckplan
