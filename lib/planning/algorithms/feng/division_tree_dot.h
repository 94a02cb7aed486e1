// Writes the division tree of a graph (division_tree.h) for Graphviz.
//
//   splittable     box            the two ends as "a → e", the type, the bytes of all between them
//   branched       ellipse
//   non-branched   hexagon
//   tensor         no frame       its name; its bytes, including those of statistics beside it
//
// The leaves are the single tensors (Definition 9), each below the close set that is divided at it;
// source and target are below the whole graph. Members that are single edges hold no tensor and are
// not drawn. The output is deterministic. The cost and the errors are those of DivideGraph.
#pragma once

#include <string>

#include "lib/base/result.h"
#include "lib/problem/graph/tensor_graph.h"

namespace ckplan {

Result<std::string> WriteDivisionTreeDot(const TensorGraph& graph);

}  // namespace ckplan
