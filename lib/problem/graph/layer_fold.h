// A graph at the granularity of the papers: a convolution with its normalisation and activation
// is one layer, where ONNX has three nodes.
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
// Pooling, concatenation, addition of two results, and dropout are layers of their own.
// An activation that a model spells out in several nodes, x * sigmoid(x), is not recognised.
//
// Solvers decide on the folded graph. A layer's memory is that of its result, as in the papers;
// saved statistics and tensors that are overwritten inside the layer do not count. A solver's
// answer is translated back to the nodes (lib/problem/schedule/lower.h), and measured there
// exactly.
#pragma once

#include "lib/base/units.h"
#include "lib/problem/graph/tensor_graph.h"

namespace ckplan {

struct LayerFold {
  TensorGraph graph;                    // One node for each layer, named after its first node.
  IdVector<NodeId, NodeId> layer_of;    // The layer of each node: a node of `graph`.
  IdVector<NodeId, bool> makes_result;  // Whether a node's output is one of its layer's results.
};

// O(nodes + edges).
LayerFold FoldLayers(const TensorGraph& graph);

}  // namespace ckplan
