// All algorithms. `ckplan algos`, --algo, the shared tests and the documentation use this one list.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "lib/base/result.h"
#include "lib/planning/plan/solver.h"
#include "lib/problem/schedule/training_step.h"

namespace ckplan {

// Returns all algorithms that make their own decisions, in alphabetical order.
std::span<const SolverInfo> AllSolvers();
// Returns the algorithms for requests with a link to the host alone, in alphabetical order.
std::span<const SolverInfo> OffloadSolvers();
// Finds an algorithm by its name or by another name in use: "kusumoto" is exact-dp. kUsage: there
// is none of that name; the message suggests the nearest one.
Result<const SolverInfo*> FindSolver(std::string_view name);
// With this name, the planner tries all algorithms and takes the best plan; see MakePlan.
// FindSolver finds it, although it has no solver of its own.
inline constexpr std::string_view kAutoAlgorithm = "auto";
// With this name, the planner judges the decisions of the request (lib/planning/plan/decisions.h).
// It is not among AllSolvers: without decisions there is nothing to judge.
inline constexpr std::string_view kGivenAlgorithm = "given";
// Returns whether the algorithm decides on the runs of a training step, and so plans joint graphs
// as well as models. All others decide on the nodes of a forward graph.
bool PlansRuns(const SolverInfo& info);
// Returns whether the algorithm can plan this form of step: if it decides on nodes, the step needs
// a forward graph.
bool CanPlan(const SolverInfo& info, const TrainingStep& step);

// Returns whether the algorithm only answers requests with a link to the host.
bool NeedsLink(const SolverInfo& info);
// Returns whether the algorithm searches for so long that a time limit may end it: the dynamic
// programs over lower sets, and the integer program.
bool IsSlow(const SolverInfo& info);
// Returns the algorithms with the same objective whose classes of plans this algorithm's class
// contains. Each takes little time compared with it.
//
// By a paper's own objective, the larger class never has a worse optimum. But no paper's objective
// is the simulated peak, which a budget limits. A search of the larger class alone may therefore
// miss plans that a search of the smaller class finds, so the planner runs both and takes the
// better plan.
std::vector<const SolverInfo*> ContainedIn(std::string_view algorithm);
// Returns AllSolvers, OffloadSolvers, kAutoAlgorithm, kBestAlgorithm and kGivenAlgorithm, in
// alphabetical order.
// kBestAlgorithm (lib/planning/plan/request.h) is not among AllSolvers, since it starts from their
// plans.
std::vector<const SolverInfo*> ListedAlgorithms();
// Returns other names of an algorithm, in alphabetical order; plans always use the main name.
std::vector<std::string_view> AliasesOf(std::string_view name);

}  // namespace ckplan
