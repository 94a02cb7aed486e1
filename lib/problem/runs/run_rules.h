// Rules for plans in addition to the budget: some operations must run only once, and some values
// must not be kept for the backward pass. Checks sequences of runs and corrects them.
//
//   runs_once       The operation runs only once, so its values stay for all readers.
//   is_recomputed   Runs after the forward pass (of backward operations, and recomputations) must
//                   not read the values that the operation wrote in the forward pass. They read
//                   values of a later run of the operation.
//
// The forward pass ends with the last first run of a forward operation before the first run of the
// backward pass. In the order a b c B A, where B and A are backward and b must be recomputed:
//
//   a b c | b B A     allowed
//   a b c | B b A     not allowed if B reads b
//   a b b c | B A     not allowed: the second run of b is part of the forward pass
#pragma once

#include <cstdint>
#include <vector>

#include "lib/problem/graph/joint_graph.h"
#include "lib/problem/graph/tensor_graph.h"
#include "lib/problem/runs/run_problem.h"

namespace ckplan {

// Indexed by operation.
struct RunRules {
  std::vector<std::vector<int32_t>> producers;  // The producers of its reads, unique.
  std::vector<bool> is_backward;                // Belongs to the backward pass.
  std::vector<bool> runs_once;
  std::vector<bool> is_recomputed;
};

// Returns true if the operation belongs to the backward pass. The loss, recognised by its type,
// belongs to the forward pass, since it reads values of the forward pass.
bool IsOfBackwardPass(const Operation& op);

// Returns the rules without constraints: runs_once and is_recomputed are false.
RunRules RulesOf(const JointGraph& graph, const RunProblem& problem);

// Returns the operation whose first run ends the forward pass; none if no forward operation runs
// before the backward pass.
OpId LastOfForwardPass(const RunRules& rules, const Runs& runs);

bool Satisfies(const RunRules& rules, const Runs& runs);

// Returns the runs unchanged if they satisfy the rules. Otherwise, skips forbidden second runs,
// recomputes values just before their reads in the backward pass, and removes recomputations whose
// values are no longer read. First runs keep their order. O(reads of all runs).
Runs ConstrainedTo(const RunRules& rules, const Runs& runs);

// Returns the operations that run twice in every plan that satisfies the rules: operations of the
// backward pass with `is_required` read their values, which must be recomputed.
std::vector<bool> FindForcedReruns(const RunRules& rules, const std::vector<bool>& is_required);

}  // namespace ckplan
