// Writes the division tree of a graph (division_tree.h) for Graphviz.
//
//   splittable     box            its two ends as "a → e", the type, and the bytes between them
//   branched       ellipse
//   non-branched   hexagon
//   tensor         no frame       its name and bytes, including those of statistics with it
//
// The leaves are the single tensors (Definition 9), each below the close set divided at it; source
// and target are below the whole graph. Single edges hold no tensor and are not drawn. The output
// is deterministic. Cost and errors are those of DivideGraph.
#pragma once

#include <string>

#include "lib/base/result.h"
#include "lib/problem/graph/tensor_graph.h"

namespace ckplan {

Result<std::string> WriteDivisionTreeDot(const TensorGraph& graph);

}  // namespace ckplan
