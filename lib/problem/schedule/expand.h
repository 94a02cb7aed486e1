// Expands a forward graph into a joint graph: its nodes forward in order, the loss, and its nodes
// backward in reverse. A schedule of the forward graph needs the same memory at each step as its
// runs in the joint graph, to the byte (lib/problem/schedule/simulate.h).
//
// The values of the joint graph express the rules of lib/problem/schedule/gradients.h:
//   - The first contribution to a gradient is a value.
//   - The operation that computes a later contribution also adds it: it reads the old sum and
//   writes
//     the new one, and the contribution itself is workspace. So every plan adds contributions in
//     the same order and gets bit-identical gradients.
//   - A gradient that passes through is an alias of the output's gradient.
// A sum overwrites the old one unless something else still needs it. With a fixed order of backward
// operations, this is known, and the new sum is an alias or a separate value. With a free order,
// the new sum is a value that may be written in place.
//
// The loss and the backward operations must not run twice, and each must run, since it writes a
// parameter gradient. That value has no bytes; a separate value without a producer has the bytes of
// all parameter gradients. With arriving gradients, the value has the bytes of
// Node::parameter_gradients instead.
#pragma once

#include <string_view>
#include <vector>

#include "lib/problem/graph/joint_graph.h"
#include "lib/problem/schedule/schedule.h"
#include "lib/problem/schedule/training_step.h"

namespace ckplan {

// The type of the loss. Its phase is backward, since it begins the backward pass and must not run
// twice.
inline constexpr std::string_view kLossType = "Loss";

struct Expansion {
  JointGraph graph;
  std::vector<Step> step_of;  // Each operation's step in schedules of the forward graph.
  // The tensor of each value that is a gradient; none for other values.
  IdVector<ValueId, TensorId> gradient_of;
};

// Expands the graph for plans that run forward in `order`, which must be topological (by default
// the graph's own), and backward in reverse. O(nodes + edges).
Expansion ExpandTensorGraph(const TensorGraph& graph);
Expansion ExpandTensorGraph(const TensorGraph& graph, const std::vector<NodeId>& order);

// Expands the graph for plans in any order. The plans are the schedules that
// lib/problem/schedule/schedule.h allows, except those that are mirrored in another order than the
// graph's. A plan needs the same memory at each step as its schedule, or less by the size of a
// contribution if a node adds to the gradients of several inputs while one of these is shared.
Expansion ExpandForAnyOrder(const TensorGraph& graph);

// Like ExpandForAnyOrder, with parameter gradients as in WithArrivingGradients (joint_graph.h).
Expansion ExpandWithArrivingGradients(const TensorGraph& graph);

// Convert runs of the expanded graph to a schedule of the forward graph that frees by liveness, and
// back. The runs must be a plan. The schedule must have passed Simulator::Run, and must run forward
// in the expansion's order if that is fixed.
Schedule ScheduleOf(const Expansion& expansion, const std::vector<OpId>& runs);
Schedule ScheduleOf(const std::vector<Step>& step_of, const std::vector<OpId>& runs);
std::vector<OpId> RunsOf(const Expansion& expansion, const Schedule& schedule);
std::vector<OpId> RunsOf(const std::vector<Step>& step_of, const Schedule& schedule);

// Delays each operation that reads a missing value until the value's producer has run. An expansion
// for any order adds gradients in the graph's order, so this turns a schedule that is mirrored in
// another order into a plan of the expansion. O(reads of all runs), plus an operation's reads for
// each producer that it waits for.
std::vector<OpId> DelayUntilReadable(const JointGraph& graph, const std::vector<OpId>& runs);

// Converts a schedule of the step's forward graph to the step's form: for a joint graph, to runs in
// the order of DelayUntilReadable.
Schedule InFormOf(const TrainingStep& step, const Schedule& schedule);

}  // namespace ckplan
