// Folds a graph to the granularity of the papers: a convolution with its normalisation and
// activation is one layer, while ONNX has three nodes.
//
//   conv ─▶ bn ─▶ relu ─▶ pool ─▶ conv ─▶ relu        nodes
//   └── layer ──────┘    └ l. ┘  └── layer ───┘       layers, with results relu, pool, relu
//
// If a layer's result has a single reader, and that node reads nothing else from the batch, the
// node joins the layer if it is
//   - an activation function, after anything ("every edge is a non-inplace operation", Feng &
//     Huang 2018; "Conv2d/ReLU", Hong et al. 2024, Fig. 3 and 4);
//   - a batch normalisation, the addition of a bias or the product with a scale, after a
//     convolution or a matrix product, as part of it ("we count a conv-bn-relu as one layer",
//     Chen et al. 2016, section 5.2).
// Pooling, concatenation, addition of two results, and dropout are separate layers. An activation
// that a model spells out in several nodes, such as x * sigmoid(x), is not recognised.
//
// Solvers work on the folded graph. A layer's memory is that of its result, as in the papers; saved
// statistics and tensors that are overwritten inside the layer do not count. lib/problem/schedule/
// lower.h translates a solution back to the nodes, where it is measured exactly.
#pragma once

#include "lib/base/units.h"
#include "lib/problem/graph/tensor_graph.h"

namespace ckplan {

struct LayerFold {
  TensorGraph graph;                    // One node per layer, named after the layer's first node.
  IdVector<NodeId, NodeId> layer_of;    // The layer of each node: a node of `graph`.
  IdVector<NodeId, bool> makes_result;  // True if an output of the node is a result of its layer.
};

// O(nodes + edges).
LayerFold FoldLayers(const TensorGraph& graph);

}  // namespace ckplan
