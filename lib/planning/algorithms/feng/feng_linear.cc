#include "lib/planning/algorithms/feng/feng_linear.h"

#include <utility>

#include "lib/planning/algorithms/feng/close_set_solver.h"

namespace ckplan {

Result<std::unique_ptr<PreparedSolver>> PrepareFengLinear(const Problem& problem,
                                                          const SolveLimits& limits) {
  TwoTerminalGraph graph = MakeTwoTerminal(problem.graph, problem.vertices);
  DivisionTree tree = DivideAtSplittingVertices(graph);
  return std::unique_ptr<PreparedSolver>(new CloseSetSolver(
      problem, std::move(graph), std::move(tree), "checkpoints at splitting vertices", limits));
}

}  // namespace ckplan
