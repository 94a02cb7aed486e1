// The orders in which the nodes of a training step may run backward.
//
// A schedule is *mirrored* if every node runs forward before the loss, and backward in the reverse
// of the order of the first forward runs. Any other order is a training step as well if each node
// runs backward once, after the loss, after its own first forward run, after every node that
// contributes to the gradient of one of its outputs, and in the reverse of the graph's order among
// the nodes that contribute to the same gradient. The gradient of a parameter that several nodes
// train counts as such a gradient.
//
//        ┌─▶ b ─┐      The gradient of a's output gets contributions from b, c and d. They are
//     a ─┼─▶ c ─┼─▶ e  added in the reverse of the graph's order, ((d + c) + b). So e, d, c, b, a
//        └─▶ d ─┘      is the only order here. Nodes that share no gradient may change places.
//
// So each sum is associated in one way only. Every such schedule computes, bit for bit, the
// gradients of keeping everything in the graph's own order; a mirrored schedule computes those of
// keeping everything in its own forward order. Nodes that no gradient reaches contribute nothing.
#pragma once

#include <vector>

#include "lib/problem/graph/tensor_graph.h"
#include "lib/problem/schedule/schedule.h"

namespace ckplan {

bool IsMirrored(const Schedule& schedule);

// Returns the forward order in which keeping everything computes the same gradients as the
// schedule, bit for bit. The schedule must have passed Simulator::Run.
std::vector<NodeId> ForwardOrderOfSameGradients(const TensorGraph& graph, const Schedule& schedule);

// Which backward steps must precede which in a schedule that is not mirrored. O(nodes + edges).
struct BackwardPrecedence {
  explicit BackwardPrecedence(const TensorGraph& graph);

  IdVector<NodeId, bool> is_reached;  // Whether a gradient reaches the node.
  // The nodes whose backward must run before that of the node; those implied by others are left
  // out.
  IdVector<NodeId, std::vector<NodeId>> after;
};

}  // namespace ckplan
