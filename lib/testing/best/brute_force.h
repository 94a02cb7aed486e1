// Generates small random joint graphs and finds their best plans by exhaustive search, for tests of
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

// Operations have one or two writes, up to three reads, workspaces and in-place pairs; some must
// not repeat, and some are not needed. The graph has one or two results, which operations may read.
JointGraph RandomSmallGraph(Rng& rng, int op_count);

// Returns a small training step: a chain of layers, followed by their gradients in reverse order.
// Each gradient reads its layer's input and output.
JointGraph ChainJointGraph(Rng& rng, int layer_count);

// Returns the graph with an operation that must not repeat.
JointGraph WithLoss(const JointGraph& graph, OpId loss);

// Returns the minimum peak over all plans. Works for at most 10 operations and 20 values. A write
// may reuse the memory of any read that is paired with it and that dies at this run.
int64_t ExhaustiveMinPeak(const RunProblem& problem);
// Like ExhaustiveMinPeak, but considers only plans that run each operation at most once.
int64_t ExhaustiveMinPeakOnce(const RunProblem& problem);
// Returns the minimum cost over all plans within the budget whose first runs follow `order` and
// that obey `rules`, if given. Returns nullopt if no such plan exists.
// With other micro-batches, tries each number of bytes to save.
std::optional<int64_t> ExhaustiveMinCost(const RunProblem& problem, std::span<const OpId> order,
                                         int64_t budget, const RunRules* rules = nullptr);
// The same with the first runs in any order.
std::optional<int64_t> ExhaustiveMinCost(const RunProblem& problem, int64_t budget,
                                         const RunRules* rules = nullptr);

}  // namespace ckplan
