// All algorithms: the one list from which `ckplan algos`, --algo, the shared tests and the docs are
// made.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "lib/base/result.h"
#include "lib/plan/solver.h"

namespace ckplan {

// In alphabetical order.
std::span<const SolverInfo> AllSolvers();
// By its name, or as people call it: "kusumoto" is exact-dp. kUsage with the nearest name if there
// is none of that name.
Result<const SolverInfo*> FindSolver(std::string_view name);
// Which of them all is best is asked of the planner by this name; see MakePlan. FindSolver finds
// it, but it has no solver of its own.
inline constexpr std::string_view kAutoAlgorithm = "auto";
// All of them and that one, in alphabetical order.
std::vector<const SolverInfo*> ListedAlgorithms();
// What else an algorithm may be called by, in alphabetical order; plans carry its name alone.
std::vector<std::string_view> AliasesOf(std::string_view name);

}  // namespace ckplan
