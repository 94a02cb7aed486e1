// The list of all algorithms, used by `ckplan algos`, --algo, the shared tests and the
// documentation.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "lib/base/result.h"
#include "lib/planning/plan/solver.h"
#include "lib/problem/schedule/training_step.h"

namespace ckplan {

// All algorithms that make their own decisions, in alphabetical order.
std::span<const SolverInfo> AllSolvers();
// The algorithms that only plan offloading to a host, in alphabetical order.
std::span<const SolverInfo> OffloadSolvers();
// Finds an algorithm by its name or an alias: "kusumoto" is exact-dp. kUsage: unknown name; the
// message suggests the nearest one.
Result<const SolverInfo*> FindSolver(std::string_view name);
// The planner tries all algorithms, and picks the best plan; see MakePlan. FindSolver knows this
// name, although it has no solver of its own.
inline constexpr std::string_view kAutoAlgorithm = "auto";
// The planner evaluates the request's decisions (lib/planning/plan/decisions.h). Not among
// AllSolvers, since it can't plan without decisions.
inline constexpr std::string_view kGivenAlgorithm = "given";
// Tells whether the algorithm plans runs of operations, so that it supports joint graphs as well as
// models. All others plan the nodes of a forward graph.
bool PlansRuns(const SolverInfo& info);
// Returns true if the algorithm's plans of forward graphs run backward node by node: it searches
// runs of the expanded graph, or builds its own schedule.
bool RunsBackwardByNode(const SolverInfo& info);
// Tells whether the algorithm supports this form of step. Algorithms that plan nodes need a forward
// graph.
bool CanPlan(const SolverInfo& info, const TrainingStep& step);

// Tells whether the algorithm requires a link to the host.
bool NeedsLink(const SolverInfo& info);
// Tells whether the algorithm can run into a time limit: the dynamic programs over lower sets, and
// the integer program.
bool IsSlow(const SolverInfo& info);
// Returns the algorithms with the same objective that search a subset of this algorithm's plans.
// Each is much faster.
//
// By a paper's own objective, the larger set never has a worse optimum. But no paper's objective is
// the simulated peak, which a budget limits. Searching the larger set alone may therefore miss
// plans that a search of the smaller one finds, so the planner runs both, and picks the better
// plan.
std::vector<const SolverInfo*> ContainedIn(std::string_view algorithm);
// Returns AllSolvers, OffloadSolvers, kAutoAlgorithm, kBestAlgorithm and kGivenAlgorithm, in
// alphabetical order. kBestAlgorithm (lib/planning/plan/request.h) is not among AllSolvers, because
// it starts from their plans.
std::vector<const SolverInfo*> ListedAlgorithms();
// Returns the aliases of an algorithm, in alphabetical order. Plans always use the main name.
std::vector<std::string_view> AliasesOf(std::string_view name);

}  // namespace ckplan
