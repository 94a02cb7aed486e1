// The division tree of a graph (division_tree.h) as a picture, for `dot -Tsvg`.
//
//   splittable     box            "a → e", what lies between, its bytes, and, for types 1 and 3,
//   branched       ellipse        where it is divided
//   non-branched   hexagon
//
// Edges of the graph, the leaves, are counted in their parent's label and not drawn: they are most
// of a tree. Deterministic; the cost is that of DivideGraph, and so are the errors.
#pragma once

#include <string>

#include "lib/base/result.h"
#include "lib/graph/tensor_graph.h"

namespace ckplan {

Result<std::string> WriteDivisionTreeDot(const TensorGraph& graph);

}  // namespace ckplan
