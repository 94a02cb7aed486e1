// A graph, or a plan for it, as a picture of its modules for Graphviz: what is drawn of graphs that
// are too large to be looked at node by node.
//
// A box is a module at the deepest level of nesting at which there are at most kMaxDotBoxes. Where
// nodes are in no modules, or in too many, it is a segment of the plan or, without those, a run of
// nodes that follow one another. A box says how many nodes it has and, of a plan, how many of them
// run again and how much those that are kept make; an edge how much goes from one box to another.
#pragma once

#include <cstddef>
#include <string>

#include "lib/explain/planned_graph.h"
#include "lib/plan/plan.h"

namespace ckplan {

inline constexpr size_t kMaxDotBoxes = 60;
// Graphs with more nodes are folded. Graphviz takes seconds for as many, and people lose their way.
inline constexpr size_t kMaxDotNodes = 300;

// `plan` may be null.
std::string WriteFoldedDot(const std::string& name, const PlannedGraph& graph, const Plan* plan);

}  // namespace ckplan
