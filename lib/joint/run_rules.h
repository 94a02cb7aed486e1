// What a plan may be asked for beside its budget: operations that run once, and values that are not
// kept for the backward pass. How sequences of runs are judged by it, and changed to obey it.
//
//   runs_once       no second run: what it makes is there for all that ever reads it
//   is_recomputed   what it has made before the forward pass ends is gone behind that end: what is
//                   read there, by operations of the backward pass and by runs of others beyond
//                   their first, has been made there, by a run beyond its first
//
// The forward pass ends with the last first run of one of its operations before the first run of
// the backward pass. In the order a b c B A, where B and A are backward and b is to be recomputed:
//
//   a b c | b B A     obeys
//   a b c | B b A     does not if B reads b
//   a b b c | B A     does not: the second run is of the forward pass
#pragma once

#include <cstdint>
#include <vector>

#include "lib/graph/tensor_graph.h"
#include "lib/joint/joint_graph.h"
#include "lib/joint/run_problem.h"

namespace ckplan {

// By operation.
struct RunRules {
  std::vector<std::vector<int32_t>> makers;  // Of all that it reads, each once.
  std::vector<bool> is_backward;             // It is of the backward pass.
  std::vector<bool> runs_once;
  std::vector<bool> is_recomputed;
};

// Whether the operation is of the backward pass. The loss, by its type, is of the forward pass: it
// reads results where the forward pass has made them.
bool IsOfBackwardPass(const Operation& op);

// Without rules: all that the graph alone says. In the flat form whoever reads an alias reads what
// it is in the memory of as well.
RunRules RulesOf(const JointGraph& graph, const RunProblem& problem);

// The operation with whose first run the forward pass ends; none if nothing of it runs before the
// backward pass, or at all.
OpId LastOfForwardPass(const RunRules& rules, const Runs& runs);

bool Obeys(const RunRules& rules, const Runs& runs);

// The runs if they obey; else without the runs that are one too many, with what is to be recomputed
// run again just before it is read in the backward pass, and without runs beyond the first of which
// nothing is read any more. First runs stay in their order. O(reads of all runs).
Runs MadeToObey(const RunRules& rules, const Runs& runs);

// The operations that run twice in every plan that obeys, for their values are to be recomputed and
// are read in the backward pass by operations that `is_required`.
std::vector<bool> ForcedToRunAgain(const RunRules& rules, const std::vector<bool>& is_required);

}  // namespace ckplan
