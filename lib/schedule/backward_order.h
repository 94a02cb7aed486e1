// In which orders the nodes of a training step may run backward.
//
// A schedule is *mirrored* if every node runs forward before the loss, and backward in the reverse
// of the order of the first forward runs. Any other order is a training step as well if each node
// runs backward once, behind the loss, behind its own first forward run, and behind
//   - the nodes that contribute to the gradient of one of its outputs;
//   - of the nodes that contribute to a gradient that it contributes to itself, those that come
//     later in the graph; likewise with the gradient of a parameter that several nodes train.
//
//        ┌─▶ b ─┐         Gradients of a's output come from b, c and d. They are added up as in the
//     a ─┼─▶ c ─┼─▶ e     reverse of the graph's order, ((d + c) + b): so e, d, c, b, a is the only
//        └─▶ d ─┘         order here, while nodes with nothing in common may change places.
//
// So each sum has one association, and every such schedule computes the gradients that keeping
// everything in the graph's own order computes, bit for bit; a mirrored one those of keeping
// everything in its own forward order. Nodes that no gradient reaches contribute nothing.
#pragma once

#include <vector>

#include "lib/graph/tensor_graph.h"
#include "lib/schedule/schedule.h"

namespace ckplan {

bool IsMirrored(const Schedule& schedule);

// The forward order in which keeping everything computes the same gradients, bit for bit, as the
// schedule, which must have passed Simulator::Run.
std::vector<NodeId> ForwardOrderOfSameGradients(const TensorGraph& graph, const Schedule& schedule);

// What runs before what in schedules that are not mirrored. O(nodes + edges).
struct BackwardPrecedence {
  explicit BackwardPrecedence(const TensorGraph& graph);

  IdVector<NodeId, bool> is_reached;  // By a gradient.
  // Nodes whose backward must have run before; those that must have run before them are left out.
  IdVector<NodeId, std::vector<NodeId>> after;
};

}  // namespace ckplan
