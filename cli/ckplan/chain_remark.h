// What to say where an algorithm for chains meets a graph that is none.
#pragma once

#include <string>

#include "lib/graph/tensor_graph.h"
#include "lib/plan/plan.h"
#include "lib/planner/source.h"

namespace ckplan {

// Whether algorithms for chains have a splitting vertex to cut at (lib/graph/chain.h).
bool CanBeCut(const TensorGraph& graph);

// Why a plan by such an algorithm keeps everything, and which algorithms take any graph. Empty
// where the plan runs something again, where the graph can be cut, and for all other algorithms.
std::string NothingToCut(const Source& source, const Plan& plan);

}  // namespace ckplan
