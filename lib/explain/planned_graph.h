// The interface through which explanations and pictures of plans see a graph. It covers forward
// graphs and joint graphs, whose operations are nodes and whose values are tensors, so each
// explanation is written once.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.h"
#include "lib/base/units.h"
#include "lib/graph/module_calls.h"
#include "lib/graph/tensor_graph.h"
#include "lib/joint/joint_graph.h"
#include "lib/plan/constraints.h"
#include "lib/schedule/memory_curve.h"
#include "lib/schedule/schedule.h"
#include "lib/schedule/timeline.h"

namespace ckplan {

struct PlanRequest;

// The simulator's figures of a schedule.
struct Measured {
  Bytes peak;
  size_t peak_step = 0;
  Cost overhead;  // As PlanFigures::overhead.
};

class PlannedGraph {
 public:
  virtual ~PlannedGraph() = default;

  virtual bool is_joint() const = 0;
  virtual size_t node_count() const = 0;
  virtual size_t tensor_count() const = 0;

  // The name for messages; one without a name is "tensor 7", by its number in files.
  virtual std::string NameOf(NodeId node) const = 0;
  virtual std::string NameOf(TensorId tensor) const = 0;
  virtual std::string_view OpOf(NodeId node) const = 0;
  // The paths of the modules that the node is in, the outermost first: "layer1", "layer1.0",
  // "layer1.0.conv1". If the graph has no modules, the parts of the node's name before each slash.
  virtual std::vector<std::string> ModulesOf(NodeId node) const = 0;

  virtual NodeId MakerOf(TensorId tensor) const = 0;  // None if the tensor is given from outside.
  // The tensor in whose memory this one is: the tensor itself unless it is an alias.
  virtual TensorId StorageOf(TensorId tensor) const = 0;
  virtual Bytes BytesOf(TensorId tensor) const = 0;
  // Whether it has memory of its own in a step.
  virtual bool CountsInPeak(TensorId tensor) const = 0;
  virtual const std::vector<TensorId>& OutputsOf(NodeId node) const = 0;
  // The cost of one forward run, or of one run of the operation.
  virtual Cost RunCostOf(NodeId node) const = 0;
  virtual Cost CostOf(const Step& step) const = 0;  // Zero for the loss of a forward graph.
  // Whether the graph allows it; see TracedPlan::MayRunAgain.
  virtual bool MayRunAgain(NodeId node) const = 0;
  virtual Result<Constraints> ConstraintsOf(const PlanRequest& request) const = 0;

  virtual Step RunOf(NodeId node) const = 0;
  virtual const std::vector<TensorId>& ReadsOf(const Step& step) const = 0;
  // The tensors that the step makes new versions of, without gradients.
  virtual const std::vector<TensorId>& MakesOf(const Step& step) const = 0;
  // Whether the step belongs to the backward pass, wherever it is in the schedule.
  virtual bool IsBackward(const Step& step) const = 0;
  // The memory that the step needs in any plan: what it reads and makes, less what it may write in
  // place, and its workspace. Gradients are not included.
  virtual Bytes OwnNeedOf(const Step& step) const = 0;

  // Runs everything once, in the graph's own order.
  virtual Schedule KeepAll() const = 0;
  virtual Timeline TimelineOf(const Schedule& schedule) const = 0;
  // The kinds of the timeline's versions. In a joint graph, the results of first runs of backward
  // operations count as gradients.
  virtual std::vector<MemoryKind> KindsOf(const Schedule& schedule,
                                          const Timeline& timeline) const = 0;
  // Returns kInvalidInput if the schedule is not a training step of the graph.
  virtual Result<Measured> Measure(const Schedule& schedule) const = 0;
  // Removes runs beyond the first of each node whose results are never read. The schedule must free
  // by liveness.
  virtual Schedule WithoutUnreadRuns(const Schedule& schedule) const = 0;
};

// Both refer to their arguments. `modules` may be null or empty.
std::unique_ptr<PlannedGraph> PlannedGraphOf(const TensorGraph& graph, const ModuleCalls* modules);
std::unique_ptr<PlannedGraph> PlannedGraphOf(const JointGraph& graph);

// Describes a step: "backward of conv1". `has_run` says whether the step's node has run before.
std::string DescribeStep(const PlannedGraph& graph, const Step& step, bool has_run);

}  // namespace ckplan
