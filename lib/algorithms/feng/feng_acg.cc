#include "lib/algorithms/feng/feng_acg.h"

#include <optional>
#include <utility>

#include "lib/algorithms/feng/close_set_solver.h"

namespace ckplan {

Result<std::unique_ptr<PreparedSolver>> PrepareFengAcg(const Problem& problem,
                                                       const SolveLimits& limits) {
  TwoTerminalGraph graph = MakeTwoTerminal(problem.graph, problem.vertices);
  std::optional<DivisionTree> tree = DivideGraph(graph, limits.stop);
  if (!tree) return MakeError(ErrorCode::kTimeout, "feng-acg: stopped before the division tree");
  return std::unique_ptr<PreparedSolver>(new CloseSetSolver(
      problem, std::move(graph), *std::move(tree), "divisions into close sets", limits));
}

}  // namespace ckplan
