// One training step. All code that measures, places, checks, explains or writes plans uses this
// view of the graph.
//
// A step has one of two forms:
//   forward  A TensorGraph. Its nodes run forward, then comes the loss, then the nodes run
//            backward, and gradients come and go by fixed rules (gradients.h).
//   joint    A JointGraph. Every step of a schedule is a run of one of its operations. Here the
//            operations take the place of nodes, and the values take the place of tensors.
// A joint step that was made from a forward graph (expand.h) knows that graph as well, so
// algorithms that decide on the nodes of a forward graph can plan it.
//
// This is a view: it refers to the graphs, which must outlive it. It is cheap to copy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/units.h"
#include "lib/problem/cost/link.h"
#include "lib/problem/graph/joint_graph.h"
#include "lib/problem/graph/origins.h"
#include "lib/problem/graph/tensor_graph.h"
#include "lib/problem/schedule/schedule.h"

namespace ckplan {

class TrainingStep {
 public:
  // These are implicit, because a graph alone is a step of its form. `modules` may be null.
  TrainingStep(const TensorGraph& graph, const ModuleCalls* modules = nullptr);  // NOLINT
  TrainingStep(const JointGraph& graph);                                         // NOLINT
  // The joint graph was made from the forward graph; `step_of` says which step of its schedules
  // each operation is (Expansion::step_of).
  TrainingStep(const JointGraph& graph, const TensorGraph& forward,
               const std::vector<Step>& step_of);

  // This step with another joint graph of the same operations and values.
  TrainingStep WithJoint(const JointGraph& graph) const;
  // This step on a device with a link to its host, over which plans may move values (transfers.h).
  // `link` may be null, and must outlive the step.
  TrainingStep WithLink(const Link* link) const;
  const Link* link() const { return link_; }  // Null if values stay on the device.

  bool is_joint() const { return joint_ != nullptr; }
  const JointGraph& joint() const { return *joint_; }  // Only for the joint form.
  // Whether there is a forward graph: the step's own, or the one that it was made from.
  bool has_forward() const { return forward_ != nullptr; }
  const TensorGraph& forward() const { return *forward_; }
  // Only for a joint step that was made from a forward graph.
  const std::vector<Step>& step_of() const { return *step_of_; }

  const std::string& name() const;
  size_t node_count() const;
  size_t tensor_count() const;
  IdRange<NodeId> node_ids() const { return IdRange<NodeId>(node_count()); }
  IdRange<TensorId> tensor_ids() const { return IdRange<TensorId>(tensor_count()); }
  std::string_view node_word() const { return is_joint() ? "operation" : "node"; }
  std::string_view tensor_word() const { return is_joint() ? "value" : "tensor"; }

  // The name for messages. A node or tensor without a name is "conv 7" or "tensor 7", by its number
  // in files.
  std::string NameOf(NodeId node) const;
  std::string NameOf(TensorId tensor) const;
  const std::string& RawNameOf(NodeId node) const;  // As the graph has it, maybe empty.
  const std::string& RawNameOf(TensorId tensor) const;
  int64_t FileIdOf(NodeId node) const;  // The number that files use for it.
  int64_t FileIdOf(TensorId tensor) const;
  const std::string& OpOf(NodeId node) const;
  // The paths of the modules that the node is in, the outermost first: "layer1", "layer1.0",
  // "layer1.0.conv1". If the graph has no modules, the parts of the node's name before each slash.
  std::vector<std::string> ModulesOf(NodeId node) const;

  NodeId ProducerOf(TensorId tensor) const;  // None if the tensor is given from outside.
  // The tensor whose memory this one uses: the tensor itself unless it is an alias.
  TensorId StorageOf(TensorId tensor) const;
  Bytes BytesOf(TensorId tensor) const;
  // Whether it has memory of its own in a step.
  bool CountsInPeak(TensorId tensor) const;
  const std::vector<NodeId>& ReadersOf(TensorId tensor) const;  // In the forward pass, or all.
  const std::vector<TensorId>& OutputsOf(NodeId node) const;
  Cost RunCostOf(NodeId node) const;    // One forward run, or one run of the operation.
  Cost CostOf(const Step& step) const;  // Zero for the loss of a forward graph.
  bool MayRunAgain(NodeId node) const;

  Step RunOf(NodeId node) const;
  const std::vector<TensorId>& ReadsOf(const Step& step) const;
  // The tensors that the step makes new versions of, without gradients.
  const std::vector<TensorId>& MakesOf(const Step& step) const;
  // Whether the step belongs to the backward pass, wherever it is in the schedule.
  bool IsBackward(const Step& step) const;
  bool HasBackward() const;  // Whether it says which steps are backward. O(operations).
  // The memory that the step needs in any plan: what it reads and makes, less what it may write in
  // place, and its workspace. Gradients are not included.
  Bytes OwnNeedOf(const Step& step) const;
  // Runs everything once, in the graph's own order.
  Schedule KeepAll() const;

  // Costs of everything, each run once.
  Cost forward_cost() const;
  Cost backward_cost() const;
  Cost cost() const { return forward_cost() + backward_cost(); }
  // The overhead of a plan is the cost of its runs beyond one of each node. This is the overhead of
  // running only what is needed: zero, or less if no result needs some operations of a joint graph.
  Cost MinOverhead() const;
  ConstantMemory constants() const;
  // The gradients of parameters, wherever they are counted, that optimizers keep state for.
  Optimized optimized() const;
  int64_t micro_batches() const { return is_joint() ? 1 : forward_->micro_batches(); }

 private:
  const TensorGraph* forward_ = nullptr;
  const JointGraph* joint_ = nullptr;
  const std::vector<Step>* step_of_ = nullptr;
  const ModuleCalls* modules_ = nullptr;  // Null if there are none.
  const Link* link_ = nullptr;
};

// Describes a step: "backward of conv1". `has_run` says whether the step's node has run before.
std::string DescribeStep(const TrainingStep& of, const Step& step, bool has_run);

}  // namespace ckplan
