// For tests: small random joint graphs, and the best plans of them by search of all states.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "lib/base/rng.h"
#include "lib/joint/joint_graph.h"
#include "lib/joint/run_problem.h"
#include "lib/joint/run_rules.h"

namespace ckplan {

// Operations with one or two writes, up to three reads, workspaces, in-place pairs, some that must
// not repeat and some that nobody needs; up to two results that may be read as well.
JointGraph RandomJointGraph(Rng& rng, int op_count);

// A chain of layers forward and their gradients backward, each gradient of which reads its layer's
// input and output: a training step in small.
JointGraph ChainJointGraph(Rng& rng, int layer_count);

// The least peak of all plans of at most 10 operations and 20 values. A write may take over the
// memory of any read that dies at its run and that it is paired with.
int64_t ExhaustiveLeastPeak(const RunProblem& problem);
// The same, of plans in which each operation runs at most once.
int64_t ExhaustiveLeastPeakOnce(const RunProblem& problem);
// The least cost of all plans within the budget in which the first runs of `order`'s operations
// come in this order; nothing if there is none.
// With `rules`, the least of those that obey them.
std::optional<int64_t> ExhaustiveLeastCost(const RunProblem& problem, std::span<const OpId> order,
                                           int64_t budget, const RunRules* rules = nullptr);
// The same in any order.
std::optional<int64_t> ExhaustiveLeastCost(const RunProblem& problem, int64_t budget,
                                           const RunRules* rules = nullptr);

}  // namespace ckplan
