// Finds the operations that come before or after an operation in every order.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lib/problem/runs/run_problem.h"

namespace ckplan {

// Return a flag for each operation, not set for `op` itself. O(reads of all operations).
std::vector<bool> AncestorsOf(const RunProblem& problem, int32_t op);
std::vector<bool> DescendantsOf(const RunProblem& problem, int32_t op);

// Returns the longest chain of these operations in which each is an ancestor of the next. Among
// equally long chains, it is the one whose operations are listed first. O(reads of all operations)
// for each of `ops`.
std::vector<OpId> LongestChain(const RunProblem& problem, std::span<const OpId> ops);

}  // namespace ckplan
