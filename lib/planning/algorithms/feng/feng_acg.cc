#include "lib/planning/algorithms/feng/feng_acg.h"

#include <utility>

#include "lib/planning/algorithms/feng/close_set_solver.h"

namespace ckplan {

Result<std::unique_ptr<PreparedSolver>> PrepareFengAcg(const Problem& problem,
                                                       const SolveLimits& limits) {
  TwoTerminalGraph graph = MakeTwoTerminal(problem.graph, problem.vertices);
  CKPLAN_ASSIGN_OR_RETURN(DivisionTree tree, DivideGraph(graph, limits.stop));
  return std::unique_ptr<PreparedSolver>(new CloseSetSolver(
      problem, std::move(graph), std::move(tree), "divisions into close sets", limits));
}

}  // namespace ckplan
