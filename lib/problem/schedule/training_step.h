// A view of a training step's graph, for all code that measures, places, checks, explains or writes
// plans. A step has one of two forms:
//   forward  A TensorGraph. Its nodes run forward, then the loss, then the nodes run backward, and
//            fixed rules allocate and release gradients (gradients.h).
//   joint    A JointGraph. Each step of a schedule is a run of an operation. The operations count
//   as
//            nodes, and the values as tensors.
// A joint step that was expanded from a forward graph (expand.h) also refers to that graph, so that
// algorithms for forward graphs can plan it.
//
// The view is cheap to copy. The graphs must outlive it.
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
  // Implicit, since a graph is a step of its form. `modules` may be null.
  TrainingStep(const TensorGraph& graph, const ModuleCalls* modules = nullptr);  // NOLINT
  TrainingStep(const JointGraph& graph);                                         // NOLINT
  // For a joint graph that was expanded from `forward`; see Expansion::step_of.
  TrainingStep(const JointGraph& graph, const TensorGraph& forward,
               const std::vector<Step>& step_of);

  // Returns this step with another joint graph that has the same operations and values.
  TrainingStep WithJoint(const JointGraph& graph) const;
  // Returns this step on a device with a link to its host, over which plans may move values
  // (transfers.h). `link` may be null and must outlive the step.
  TrainingStep WithLink(const Link* link) const;
  const Link* link() const { return link_; }  // Null if values stay on the device.

  bool is_joint() const { return joint_ != nullptr; }
  const JointGraph& joint() const { return *joint_; }  // Only for the joint form.
  // Returns true for the forward form, and for a joint step that was expanded from a forward graph.
  bool has_forward() const { return forward_ != nullptr; }
  const TensorGraph& forward() const { return *forward_; }
  // Only for a joint step that was expanded from a forward graph.
  const std::vector<Step>& step_of() const { return *step_of_; }

  const std::string& name() const;
  size_t node_count() const;
  size_t tensor_count() const;
  IdRange<NodeId> node_ids() const { return IdRange<NodeId>(node_count()); }
  IdRange<TensorId> tensor_ids() const { return IdRange<TensorId>(tensor_count()); }
  std::string_view node_word() const { return is_joint() ? "operation" : "node"; }
  std::string_view tensor_word() const { return is_joint() ? "value" : "tensor"; }

  // The names for messages. Without a name: "node 7", "operation 7" or "tensor 7", with its
  // file_id.
  std::string NameOf(NodeId node) const;
  std::string NameOf(TensorId tensor) const;
  const std::string& RawNameOf(NodeId node) const;  // The graph's name, which may be empty.
  const std::string& RawNameOf(TensorId tensor) const;
  int64_t FileIdOf(NodeId node) const;  // The id in files.
  int64_t FileIdOf(TensorId tensor) const;
  const std::string& OpOf(NodeId node) const;
  // The paths of the modules that contain the node, outermost first: "layer1", "layer1.0",
  // "layer1.0.conv1". Without modules, the prefixes of the node's name before each slash.
  std::vector<std::string> ModulesOf(NodeId node) const;

  NodeId ProducerOf(TensorId tensor) const;  // None for inputs.
  // The tensor whose memory this one uses: itself unless it is an alias.
  TensorId StorageOf(TensorId tensor) const;
  Bytes BytesOf(TensorId tensor) const;
  // Returns true if the tensor has its own memory, which counts in the peak.
  bool CountsInPeak(TensorId tensor) const;
  // The readers: only those in the forward pass for the forward form, otherwise all.
  const std::vector<NodeId>& ReadersOf(TensorId tensor) const;
  const std::vector<TensorId>& OutputsOf(NodeId node) const;
  Cost RunCostOf(NodeId node) const;    // One forward run, or one run of the operation.
  Cost CostOf(const Step& step) const;  // Zero for the loss of a forward graph.
  bool CanRerun(NodeId node) const;

  Step RunOf(NodeId node) const;
  const std::vector<TensorId>& ReadsOf(const Step& step) const;
  // The tensors of which the step creates new versions, without gradients.
  const std::vector<TensorId>& MakesOf(const Step& step) const;
  // Returns true if the step's node or operation belongs to the backward pass.
  bool IsBackward(const Step& step) const;
  bool HasBackward()
      const;  // False if a joint graph marks no operation as backward. O(operations).
  // The memory that the step needs in any plan: its reads, its writes except those that can be in
  // place, and its workspace. Gradients are not included.
  Bytes OwnNeedOf(const Step& step) const;
  // Returns the schedule that runs everything once, in the graph's own order.
  Schedule KeepAll() const;

  // The costs of running everything once.
  Cost forward_cost() const;
  Cost backward_cost() const;
  Cost cost() const { return forward_cost() + backward_cost(); }
  // A lower bound on the overhead of plans, which is the cost in addition to one run of each node:
  // zero, or negative if a joint graph has operations that no result needs.
  Cost MinOverhead() const;
  ConstantMemory constants() const;
  // The parameter gradients for which optimizers keep state.
  Optimized optimized() const;
  int64_t micro_batches() const { return is_joint() ? 1 : forward_->micro_batches(); }

 private:
  const TensorGraph* forward_ = nullptr;
  const JointGraph* joint_ = nullptr;
  const std::vector<Step>* step_of_ = nullptr;
  const ModuleCalls* modules_ = nullptr;  // Null without modules.
  const Link* link_ = nullptr;
};

// Describes a step, such as "backward of conv1". `has_run`: its node has run before.
std::string DescribeStep(const TrainingStep& of, const Step& step, bool has_run);

}  // namespace ckplan
