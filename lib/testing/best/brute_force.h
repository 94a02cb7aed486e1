// Small random joint graphs, and their best plans by a search of all states, for tests of
// lib/planning/algorithms/best.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "lib/base/rng.h"
#include "lib/problem/graph/joint_graph.h"
#include "lib/problem/runs/run_problem.h"
#include "lib/problem/runs/run_rules.h"

namespace ckplan {

// Its operations have one or two writes, up to three reads, workspaces and in-place pairs; some
// must not repeat, and some are not needed. It has one or two results, which operations may read.
JointGraph RandomSmallGraph(Rng& rng, int op_count);

// A small training step: a chain of layers, and their gradients in reverse, each of which reads its
// layer's input and output.
JointGraph ChainJointGraph(Rng& rng, int layer_count);

// Returns the least peak of all plans for at most 10 operations and 20 values. A write may take
// over the memory of any read that it is paired with and that dies at its run.
int64_t ExhaustiveMinPeak(const RunProblem& problem);
// The least peak of the plans in which each operation runs at most once.
int64_t ExhaustiveMinPeakOnce(const RunProblem& problem);
// The least cost of all plans within the budget in which the first runs of `order`'s operations
// come in this order, and which obey `rules` if it is given; nothing if there is no such plan.
std::optional<int64_t> ExhaustiveMinCost(const RunProblem& problem, std::span<const OpId> order,
                                         int64_t budget, const RunRules* rules = nullptr);
// The least cost of all plans within the budget, in whatever order.
std::optional<int64_t> ExhaustiveMinCost(const RunProblem& problem, int64_t budget,
                                         const RunRules* rules = nullptr);

}  // namespace ckplan
