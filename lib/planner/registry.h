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
// Finds an algorithm by its name or by another name that people use: "kusumoto" is exact-dp. kUsage
// with the nearest name if there is none of that name.
Result<const SolverInfo*> FindSolver(std::string_view name);
// Under this name the planner tries all algorithms and takes the best plan; see MakePlan.
// FindSolver finds the name, but it has no solver of its own.
inline constexpr std::string_view kAutoAlgorithm = "auto";
// All algorithms and kAutoAlgorithm, in alphabetical order.
std::vector<const SolverInfo*> ListedAlgorithms();
// Other names of an algorithm, in alphabetical order; plans always state its main name.
std::vector<std::string_view> AliasesOf(std::string_view name);

}  // namespace ckplan
