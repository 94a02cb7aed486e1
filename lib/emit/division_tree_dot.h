// The division tree of a graph (division_tree.h) as a picture, for `dot -Tsvg`.
//
//   splittable     box            "a → e", the two ends; the type; the bytes of all between them
//   branched       ellipse
//   non-branched   hexagon
//   tensor         no frame       its name; its bytes, with those of statistics beside it
//
// The leaves are the single tensors (Definition 9), each below the close set that is divided at it,
// source and target below the whole graph. Members of a division that are single edges hold no
// tensor and are not drawn. Deterministic; the cost is that of DivideGraph, and so are the errors.
#pragma once

#include <string>

#include "lib/base/result.h"
#include "lib/graph/tensor_graph.h"

namespace ckplan {

Result<std::string> WriteDivisionTreeDot(const TensorGraph& graph);

}  // namespace ckplan
