// The core data structure of ckplan: the ordered list of the steps of a training step.
//
// Every strategy is lowered to a Schedule, and the simulator, the arena, the checker, the emitters
// and the executor use only schedules. Example: a chain a → b → c where the backward of c reads b,
// which is dropped and recomputed:
//
//   forward a, forward b, forward c, loss, forward b, backward c, backward b, backward a
//
// The schedule of a joint graph (lib/problem/graph/joint_graph.h) consists of runs of its
// operations and, with offloading, of transfers (lib/problem/schedule/transfers.h). The end of this
// file defines the orders in which nodes may run backward.
#pragma once

#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "lib/base/units.h"
#include "lib/problem/graph/tensor_graph.h"

namespace ckplan {

enum class StepKind : uint8_t {
  kForward,   // Run a node forward: the first run, or a recomputation of its outputs.
  kLoss,      // Create the gradient of each output of the graph.
  kBackward,  // Run a node backward.
  kFree,      // Release a tensor; only in schedules with explicit frees.
  // Release the gradient of a tensor; only in schedules with explicit frees for graphs whose
  // backward steps are by input (BackwardForm).
  kFreeGradient,
  kRun,  // Run an operation of a joint graph: the first run or a recomputation.
  // Transfers of a value of a joint graph, between the device and its host.
  kOut,   // Begin to copy the value to the host. The value must not change until its drop.
  kDrop,  // Wait for that copy, and release the value on the device.
  kIn,    // Allocate the value on the device, and begin to copy it back.
};

constexpr bool IsTransfer(StepKind kind) { return kind >= StepKind::kOut; }

struct Step {
  StepKind kind = StepKind::kLoss;
  // The node or operation; the tensor or value for frees and transfers; -1 for the loss.
  int32_t index = -1;

  static Step Forward(NodeId node) { return {StepKind::kForward, node.index()}; }
  static Step Loss() { return {StepKind::kLoss, -1}; }
  static Step Backward(NodeId node) { return {StepKind::kBackward, node.index()}; }
  static Step Free(TensorId tensor) { return {StepKind::kFree, tensor.index()}; }
  static Step FreeGradient(TensorId of) { return {StepKind::kFreeGradient, of.index()}; }
  static Step Run(NodeId op) { return {StepKind::kRun, op.index()}; }
  static Step Out(TensorId value) { return {StepKind::kOut, value.index()}; }
  static Step Drop(TensorId value) { return {StepKind::kDrop, value.index()}; }
  static Step In(TensorId value) { return {StepKind::kIn, value.index()}; }

  NodeId node() const { return NodeId(index); }
  TensorId tensor() const { return TensorId(index); }
  bool is_free() const { return kind == StepKind::kFree || kind == StepKind::kFreeGradient; }
  bool is_transfer() const { return IsTransfer(kind); }
  bool operator==(const Step&) const = default;
};

enum class FreePolicy : uint8_t {
  kLiveness,  // A version of a tensor dies after the last step that reads it.
  kExplicit,  // A version dies at its kFree step, as in the papers.
};

struct Schedule {
  std::vector<Step> steps;
  FreePolicy frees = FreePolicy::kLiveness;

  bool operator==(const Schedule&) const = default;
};

// Runs the nodes forward in this order, then the loss, then the nodes backward in reverse.
Schedule KeepAllSchedule(const std::vector<NodeId>& order);
Schedule KeepAllInOwnOrder(const TensorGraph& graph);

// Returns the nodes in the order of their first forward steps.
std::vector<NodeId> ForwardOrder(const Schedule& schedule);

// Returns the tensors that a step of a forward graph reads.
const std::vector<TensorId>& ReadsOf(const TensorGraph& graph, const Step& step);

bool HasTransfers(const Schedule& schedule);

// Convert runs to a schedule of a joint graph, and back. RunsOf skips transfers.
Schedule ScheduleOfRuns(std::span<const NodeId> runs);
std::vector<NodeId> RunsOf(const Schedule& schedule);

// ---- Strategies: the decisions of solvers, before they are lowered to a Schedule ----

// An increasing sequence of lower sets L_1 < ... < L_k = V (Kusumoto et al. 2019, section 3):
// node v belongs to L_i \ L_{i-1} with i - 1 = segment_of[v]. The forward pass keeps the boundary
// of each L_i and the last segment. The other segments are recomputed when their backward begins.
struct LowerSetSequence {
  IdVector<NodeId, int32_t> segment_of;
  int32_t segment_count = 0;
};

// A set of nodes whose results stay in memory after forward. Other results are recomputed once,
// when backward first reads them.
struct KeptSet {
  IdVector<NodeId, bool> is_kept;
};

// Blocks in forward order, cut recursively into kept_per_level + 1 ranges of nearly equal size
// (Chen et al. 2016, section 4.4). Results that cross the cuts of a range are kept during the
// range's backward, and each range except the last reruns forward before its backward. No block
// reads from a later block. See lower.h.
struct RecursiveSplit {
  IdVector<NodeId, int32_t> block_of;
  int32_t block_count = 0;     // At least 1; no block is empty.
  int32_t kept_per_level = 1;  // k of Eq. 2, at least 1.
};

using Strategy = std::variant<LowerSetSequence, KeptSet, RecursiveSplit, Schedule>;

// ---- The orders in which the nodes of a training step may run backward ----
//
// A schedule is *mirrored* if every node runs forward before the loss, and backward in the reverse
// of the order of the first forward runs. Other orders are also allowed if each node runs backward
// once, after the loss, after its own first forward run, after all nodes that contribute to the
// gradient of one of its outputs, and in reverse graph order among the nodes that contribute to the
// same gradient, including the gradient of a parameter that several nodes train.
//
//        ┌─▶ b ─┐      The gradient of a's output gets contributions from b, c and d. They are
//     a ─┼─▶ c ─┼─▶ e  added in reverse graph order, ((d + c) + b). So e, d, c, b, a is the only
//        └─▶ d ─┘      order here. Nodes that do not share a gradient can swap places.
//
// So the order of each sum is fixed. Such a schedule computes bit-identical gradients to keep-all
// in the graph's own order; a mirrored schedule, to keep-all in its own forward order. Nodes that
// no gradient reaches contribute nothing.
bool IsMirrored(const Schedule& schedule);

// Returns the forward order in which keep-all computes bit-identical gradients to the schedule. The
// schedule must have passed Simulator::Run.
std::vector<NodeId> ForwardOrderOfSameGradients(const TensorGraph& graph, const Schedule& schedule);

// The precedence of backward steps in a schedule that is not mirrored. O(nodes + edges).
struct BackwardPrecedence {
  explicit BackwardPrecedence(const TensorGraph& graph);

  IdVector<NodeId, bool> is_reached;  // A gradient reaches the node.
  // The nodes whose backward must run before the node's, without those that others imply.
  IdVector<NodeId, std::vector<NodeId>> after;
};

}  // namespace ckplan
