// The rules that a plan may have to obey in addition to its budget: some operations run once, and
// some values are not kept for the backward pass. Checks sequences of runs, and changes them to
// obey.
//
//   runs_once       The operation has no second run: its values stay for all their readers.
//   is_recomputed   The values that the operation made in the forward pass are not read after it.
//                   Readers after the forward pass, which are operations of the backward pass and
//                   second runs of others, read values from a later run of the operation.
//
// The forward pass ends with the last first run of one of its operations before the first run of
// the backward pass. In the order a b c B A, where B and A are backward and b must be recomputed:
//
//   a b c | b B A     obeys
//   a b c | B b A     does not obey if B reads b
//   a b b c | B A     does not obey: the second run is part of the forward pass
#pragma once

#include <cstdint>
#include <vector>

#include "lib/problem/graph/joint_graph.h"
#include "lib/problem/graph/tensor_graph.h"
#include "lib/problem/runs/run_problem.h"

namespace ckplan {

// Indexed by operation.
struct RunRules {
  std::vector<std::vector<int32_t>> producers;  // The producers of all its reads, each once.
  std::vector<bool> is_backward;                // It belongs to the backward pass.
  std::vector<bool> runs_once;
  std::vector<bool> is_recomputed;
};

// Whether the operation belongs to the backward pass. The loss, known by its type, belongs to the
// forward pass, because it reads results where the forward pass made them.
bool IsOfBackwardPass(const Operation& op);

// The graph's own rules alone. In the flat form, readers of an alias also read the value whose
// memory it shares.
RunRules RulesOf(const JointGraph& graph, const RunProblem& problem);

// The operation whose first run ends the forward pass; none if no forward operation runs before the
// backward pass, or none runs at all.
OpId LastOfForwardPass(const RunRules& rules, const Runs& runs);

bool Satisfies(const RunRules& rules, const Runs& runs);

// Returns the runs if they obey. Otherwise it leaves out forbidden second runs, runs the producers
// of recomputed values again just before their reads in the backward pass, and removes runs beyond
// the first whose values are no longer read. First runs keep their order. O(reads of all runs).
Runs ConstrainedTo(const RunRules& rules, const Runs& runs);

// The operations that run twice in every plan that obeys, because their values must be recomputed
// and are read in the backward pass by operations that `is_required`.
std::vector<bool> ForcedToRunAgain(const RunRules& rules, const std::vector<bool>& is_required);

}  // namespace ckplan
