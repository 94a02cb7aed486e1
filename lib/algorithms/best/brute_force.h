// For tests: small random joint graphs, and their best plans, found by searching all states.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "lib/base/rng.h"
#include "lib/joint/joint_graph.h"
#include "lib/joint/run_problem.h"
#include "lib/joint/run_rules.h"

namespace ckplan {

// Makes operations with one or two writes, up to three reads, workspaces and in-place pairs; some
// must not repeat and some are not needed. Up to two results may be read as well.
JointGraph RandomJointGraph(Rng& rng, int op_count);

// Makes a chain of forward layers and their backward gradients, each of which reads its layer's
// input and output: a small training step.
JointGraph ChainJointGraph(Rng& rng, int layer_count);

// Returns the least peak of all plans for at most 10 operations and 20 values. A write may take
// over the memory of any read that it is paired with and that dies at its run.
int64_t ExhaustiveLeastPeak(const RunProblem& problem);
// The same for plans in which each operation runs at most once.
int64_t ExhaustiveLeastPeakOnce(const RunProblem& problem);
// Returns the least cost of all plans within the budget whose first runs have the order of `order`,
// or nothing if there is none. With `rules`, only plans that obey them count.
std::optional<int64_t> ExhaustiveLeastCost(const RunProblem& problem, std::span<const OpId> order,
                                           int64_t budget, const RunRules* rules = nullptr);
// The same for any order.
std::optional<int64_t> ExhaustiveLeastCost(const RunProblem& problem, int64_t budget,
                                           const RunRules* rules = nullptr);

}  // namespace ckplan
