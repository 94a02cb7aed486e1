// Which operations come before and behind an operation in every order.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lib/joint/run_problem.h"

namespace ckplan {

// By operation, without `op` itself. O(reads of all operations).
std::vector<bool> AncestorsOf(const RunProblem& problem, int32_t op);
std::vector<bool> DescendantsOf(const RunProblem& problem, int32_t op);

// The longest chain of these operations in which each is an ancestor of the next, ordered so. Of
// equally long ones, that of those listed first. O(reads of all operations) for each of `ops`.
std::vector<OpId> LongestChain(const RunProblem& problem, std::span<const OpId> ops);

}  // namespace ckplan
