// Expands a forward graph into a joint graph: its nodes forward in its own order, the loss, and its
// nodes backward in reverse. Any schedule of the forward graph, as runs of the joint graph, needs
// the same memory at every step as lib/problem/schedule/simulate.h says, to the byte.
//
// The values of the joint graph express the rules of lib/problem/schedule/gradients.h:
//   - The first contribution to a gradient makes a value.
//   - The operation that makes a later contribution also adds it: it reads the sum so far and makes
//     the new one, and the contribution itself is workspace. So every plan adds contributions in
//     the order of the graph, and gets the same bits.
//   - A gradient that passes through is an alias of the output's gradient.
// A sum is written over the old one, unless something else still needs the old one. If the order of
// backward operations is fixed, it is known whether that is so, and the new sum is an alias or a
// value of its own. If the order is free, the new sum is a value that may be written in place.
//
// The loss and the backward operations never run twice. Each of them must run, because it makes a
// parameter gradient. This value has no bytes, and one value that no operation makes has the bytes
// of all parameter gradients. If gradients arrive, the value has the bytes that the node states
// instead (Node::parameter_gradients).
#pragma once

#include <string_view>
#include <vector>

#include "lib/problem/graph/joint_graph.h"
#include "lib/problem/schedule/schedule.h"
#include "lib/problem/schedule/training_step.h"

namespace ckplan {

// The type of the loss. Its phase is backward, for it never runs twice and begins the backward
// pass.
inline constexpr std::string_view kLossType = "Loss";

struct Expansion {
  JointGraph graph;
  std::vector<Step> step_of;  // The step of the forward graph's schedules that each operation is.
  // For each value that is a gradient, the tensor that it is the gradient of; none for others.
  IdVector<ValueId, TensorId> gradient_of;
};

// Expands the graph for plans that run forward in the order, which must be topological (the graph's
// own unless one is given), and backward in its reverse. O(nodes + edges).
Expansion ExpandTensorGraph(const TensorGraph& graph);
Expansion ExpandTensorGraph(const TensorGraph& graph, const std::vector<NodeId>& order);

// Expands the graph for plans in any order. Their runs are the schedules that
// lib/problem/schedule/schedule.h allows, without those that are mirrored in another order
// than the graph's. A plan never needs more memory at a step than its schedule. It may need less,
// by the size of a contribution, if a node adds to the gradients of several inputs and one of these
// gradients is shared at that time; otherwise it needs the same.
Expansion ExpandForAnyOrder(const TensorGraph& graph);

// Expands the graph in its own order, with the gradients of parameters as WithArrivingGradients
// (joint_graph.h) has them.
Expansion ExpandWithArrivingGradients(const TensorGraph& graph);

// Convert runs to the schedule with liveness that they stand for, and back. The runs must be a plan
// of the expanded graph. The schedule must have passed Simulator::Run, and must run forward in the
// order of the expansion if that has one.
Schedule ScheduleOf(const Expansion& expansion, const std::vector<OpId>& runs);
Schedule ScheduleOf(const std::vector<Step>& step_of, const std::vector<OpId>& runs);
std::vector<OpId> RunsOf(const Expansion& expansion, const Schedule& schedule);
std::vector<OpId> RunsOf(const std::vector<Step>& step_of, const Schedule& schedule);

// Returns the runs in an order in which each operation that reads a missing value is postponed
// until the value has been made. An expansion for any order adds gradients in the order of the
// graph, so this turns a schedule that runs forward in another order, and backward in its reverse,
// into a plan of the expansion. O(reads of all runs), plus the reads of an operation again for each
// producer that it waits for.
std::vector<OpId> DelayUntilReadable(const JointGraph& graph, const std::vector<OpId>& runs);

// Returns a schedule of the step's forward graph in the form of the step: if that is a joint graph,
// as the runs of DelayUntilReadable.
Schedule InFormOf(const TrainingStep& step, const Schedule& schedule);

}  // namespace ckplan
