// The core data structure of ckplan: an explicit list of what a training step does, in order.
//
// Every strategy, however clever, is lowered to a Schedule, and the simulator, the arena, the
// checker, the emitters and the executor read nothing else. Example: a chain a → b → c where the
// backward of c reads b, which is dropped and recomputed:
//
//   forward a, forward b, forward c, loss, forward b, backward c, backward b, backward a
//
// The schedule of a joint graph (lib/graph/joint_graph.h) consists only of runs of its operations.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lib/base/units.h"
#include "lib/graph/tensor_graph.h"

namespace ckplan {

enum class StepKind : uint8_t {
  kForward,   // Run a node forward: for the first time, or again to recompute its outputs.
  kLoss,      // Create the gradient of every output of the graph.
  kBackward,  // Run a node backward.
  kFree,      // Release a tensor; only in schedules with explicit frees.
  kRun,       // Run an operation of a joint graph, for the first time or again.
};

struct Step {
  StepKind kind = StepKind::kLoss;
  int32_t index = -1;  // The node or operation, or the tensor for kFree; -1 for the loss.

  static Step Forward(NodeId node) { return {StepKind::kForward, node.index()}; }
  static Step Loss() { return {StepKind::kLoss, -1}; }
  static Step Backward(NodeId node) { return {StepKind::kBackward, node.index()}; }
  static Step Free(TensorId tensor) { return {StepKind::kFree, tensor.index()}; }
  static Step Run(NodeId op) { return {StepKind::kRun, op.index()}; }

  NodeId node() const { return NodeId(index); }
  TensorId tensor() const { return TensorId(index); }
  bool operator==(const Step&) const = default;
};

enum class FreePolicy : uint8_t {
  kLiveness,  // A version of a tensor dies after the last step that reads it.
  kExplicit,  // A version dies at its kFree step: the papers' batch-wise frees.
};

struct Schedule {
  std::vector<Step> steps;
  FreePolicy frees = FreePolicy::kLiveness;

  bool operator==(const Schedule&) const = default;
};

// Runs everything forward in this order, then the loss, then everything backward, with no
// recomputation.
Schedule KeepAllSchedule(const std::vector<NodeId>& order);
Schedule KeepAllInOwnOrder(const TensorGraph& graph);

// Returns the nodes in the order of their first forward steps.
std::vector<NodeId> ForwardOrder(const Schedule& schedule);

// The tensors that a step needs in memory, for schedules of forward graphs.
const std::vector<TensorId>& ReadsOf(const TensorGraph& graph, const Step& step);

// Convert runs to a schedule of a joint graph, and back.
Schedule ScheduleOfRuns(std::span<const NodeId> runs);
std::vector<NodeId> RunsOf(const Schedule& schedule);

}  // namespace ckplan
