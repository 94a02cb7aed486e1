// Draws a graph, or a plan for it, by modules for Graphviz. It is used for graphs that are too
// large to view node by node.
//
// A box is a module, at the deepest level of nesting that has at most kMaxDotBoxes modules. If
// nodes are in no modules, or in too many, a box is a segment of the plan or, without segments, a
// run of consecutive nodes. A box shows its number of nodes and, for a plan, how many of them are
// recomputed and how many bytes the kept ones make; an edge shows the bytes between two boxes.
#pragma once

#include <cstddef>
#include <string>

#include "lib/planning/plan/plan.h"
#include "lib/problem/schedule/training_step.h"

namespace ckplan {

inline constexpr size_t kMaxDotBoxes = 60;
// Graphs with more nodes are folded. Graphviz draws about a hundred pixels for each, so a picture
// of more is several screens high.
inline constexpr size_t kMaxDotNodes = 60;

// `plan` may be null.
std::string WriteFoldedDot(const TrainingStep& graph, const Plan* plan);

}  // namespace ckplan
