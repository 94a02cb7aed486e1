#include "lib/planning/plan/run_solver.h"

#include <algorithm>
#include <utility>

#include "lib/planning/plan/constraints.h"
#include "lib/problem/schedule/expand.h"
#include "lib/problem/schedule/simulate.h"

namespace ckplan {
namespace {

class ExpandedSolver : public PreparedSolver {
 public:
  static Result<std::unique_ptr<PreparedSolver>> Create(const Problem& problem,
                                                        const SolveLimits& limits,
                                                        PrepareRuns prepare) {
    auto expanded = std::unique_ptr<ExpandedSolver>(new ExpandedSolver(problem));
    CKPLAN_ASSIGN_OR_RETURN(expanded->solver_, prepare(expanded->expansion_.graph, limits));
    return std::unique_ptr<PreparedSolver>(std::move(expanded));
  }

  Knob knob() const override { return solver_->knob(); }

  Result<SolveOutcome> Solve(int64_t setting, const SolveLimits& limits) override {
    const Knob range = knob();
    // Sizes above `max` change nothing.
    CKPLAN_ASSIGN_OR_RETURN(const RunOutcome found,
                            solver_->Solve(std::min(setting, range.max), limits));
    const Simulation simulation = simulator_.Run(found.runs).value();
    SolveOutcome outcome;
    outcome.strategy = ScheduleOf(expansion_, found.runs);
    outcome.paper = {std::nullopt, simulation.peak, simulation.cost - expansion_.graph.cost()};
    outcome.is_optimal = found.is_optimal;
    outcome.guarantee = found.guarantee;
    return outcome;
  }

 private:
  explicit ExpandedSolver(const Problem& problem)
      : expansion_(Expand(problem)), simulator_(expansion_.graph) {}

  static Expansion Expand(const Problem& problem) {
    Expansion expansion = ExpandTensorGraph(problem.graph);
    return problem.runs_once == nullptr ? expansion : ForbidReruns(expansion, *problem.runs_once);
  }

  const Expansion expansion_;
  Simulator simulator_;
  std::unique_ptr<PreparedRunSolver> solver_;
};

}  // namespace

Result<std::unique_ptr<PreparedSolver>> PrepareOnExpansion(const Problem& problem,
                                                           const SolveLimits& limits,
                                                           PrepareRuns prepare) {
  return ExpandedSolver::Create(problem, limits, prepare);
}

}  // namespace ckplan
