// A forward graph as a joint graph: its nodes forward in its own order, the loss, its nodes
// backward in reverse. Any schedule of the forward graph, taken as runs of the joint graph, needs
// as much memory at every step as lib/schedule/simulate.h says, to the byte.
//
// Gradients come and go by the rules of lib/schedule/gradients.h, which values say so:
//   - the first contribution to a gradient makes a value;
//   - a later one is added in by the operation that makes it. That operation reads the sum so far
//     and makes the new one; the contribution itself is workspace. So every order of a plan adds
//     contributions in the order of the graph, and gets the same bits;
//   - a gradient that passes through is an alias of the output's gradient.
// A sum is written over the old one, unless somebody else needs that: where the order of backward
// operations is fixed it is known which of the two happens, and the sum is an alias or a value of
// its own; where it is free the sum is a value that may be written in place.
//
// The loss and the backward operations never run twice, and each runs: it makes a parameter
// gradient. That has no bytes, and one value that no operation makes has those of all of them; or,
// where gradients are to arrive, it has the bytes that the node tells (Node::parameter_gradients).
#pragma once

#include <string_view>
#include <vector>

#include "lib/graph/joint_graph.h"
#include "lib/schedule/schedule.h"
#include "lib/schedule/training_step.h"

namespace ckplan {

// The type of the loss. Its phase is backward, for it never runs twice and begins the backward
// pass.
inline constexpr std::string_view kLossType = "Loss";

struct Expansion {
  JointGraph graph;
  std::vector<Step> step_of;  // What each operation is in a Schedule of the forward graph.
};

// For plans that run forward in the order, which must be topological (the graph's own unless one is
// given), and backward in its reverse. O(nodes + edges).
Expansion ExpandTensorGraph(const TensorGraph& graph);
Expansion ExpandTensorGraph(const TensorGraph& graph, const std::vector<NodeId>& order);

// For plans in any order: their runs are the schedules that lib/schedule/backward_order.h allows,
// without those that are mirrored in another order than the graph's. A plan needs no more than its
// schedule at any step, and just that unless a node adds to the gradients of several inputs, one of
// which is shared by then: it may need the size of a contribution less.
Expansion ExpandForAnyOrder(const TensorGraph& graph);

// The same with the gradients of parameters as WithArrivingGradients (joint_graph.h) has them.
Expansion ExpandWithArrivingGradients(const TensorGraph& graph);

// The schedule with liveness that these runs are, and back. The runs must be a plan of the expanded
// graph; the schedule must have passed Simulator::Run, and run forward in the order of the
// expansion if that has one.
Schedule ScheduleOf(const Expansion& expansion, const std::vector<OpId>& runs);
Schedule ScheduleOf(const std::vector<Step>& step_of, const std::vector<OpId>& runs);
std::vector<OpId> RunsOf(const Expansion& expansion, const Schedule& schedule);
std::vector<OpId> RunsOf(const std::vector<Step>& step_of, const Schedule& schedule);

// The runs with each operation that reads what has not been made yet put off until it has been. An
// expansion for any order adds gradients up in the order of the graph. A schedule that runs forward
// in another order and backward in its reverse becomes a plan of the expansion by this. O(reads of
// all runs), but for an operation that waits for several makers in turn.
std::vector<OpId> PutOffUntilReadable(const JointGraph& graph, const std::vector<OpId>& runs);

// The schedule of the step's forward graph in the form of the step: as runs, put off until they can
// read, if that is a joint graph.
Schedule InFormOf(const TrainingStep& step, const Schedule& schedule);

}  // namespace ckplan
