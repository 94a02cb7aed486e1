// The remark on a plan that an algorithm for chains made for a graph with nowhere to cut.
#pragma once

#include <string>

#include "lib/planning/plan/plan.h"
#include "lib/planning/planner/source.h"
#include "lib/problem/graph/tensor_graph.h"

namespace ckplan {

// Returns whether the graph has a splitting vertex at which algorithms for chains can cut
// (lib/problem/graph/vertex_graph.h).
bool CanBeCut(const TensorGraph& graph);

// Explains why a plan by an algorithm for chains keeps everything, and which algorithms take any
// graph. Empty if the plan runs something again, if the graph can be cut, and for all other
// algorithms.
std::string WhyNothingToCut(const Source& source, const Plan& plan);

}  // namespace ckplan
