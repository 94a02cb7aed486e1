// What explanations and pictures of plans ask of a graph: one face of forward graphs and of joint
// graphs, in which operations are nodes and values are tensors. So whatever reads a plan for people
// is written once.
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
#include "lib/plan/request.h"
#include "lib/schedule/memory_curve.h"
#include "lib/schedule/schedule.h"
#include "lib/schedule/timeline.h"

namespace ckplan {

// What a simulator says of a schedule.
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

  // What people are told it is called; "tensor 7" by its number in files if it has no name.
  virtual std::string NameOf(NodeId node) const = 0;
  virtual std::string NameOf(TensorId tensor) const = 0;
  virtual std::string_view OpOf(NodeId node) const = 0;
  // The modules that the node is in, by their paths, the outermost first: "layer1", "layer1.0",
  // "layer1.0.conv1". Where the graph knows no modules, what stands before each slash of its name.
  virtual std::vector<std::string> ModulesOf(NodeId node) const = 0;

  virtual NodeId MakerOf(TensorId tensor) const = 0;  // None for what is given from outside.
  // The tensor in whose memory this one is: itself unless it is an alias.
  virtual TensorId StorageOf(TensorId tensor) const = 0;
  virtual Bytes BytesOf(TensorId tensor) const = 0;      // Its size.
  virtual bool CountsInPeak(TensorId tensor) const = 0;  // It has memory of its own in a step.
  virtual const std::vector<TensorId>& OutputsOf(NodeId node) const = 0;
  virtual Cost RunCostOf(NodeId node) const = 0;    // Of one forward run, or run of the operation.
  virtual Cost CostOf(const Step& step) const = 0;  // Zero for the loss of a forward graph.
  virtual bool MayRunAgain(NodeId node) const = 0;  // By the graph; see TracedPlan::MayRunAgain.
  virtual Result<Constraints> ConstraintsOf(const PlanRequest& request) const = 0;

  virtual Step RunOf(NodeId node) const = 0;
  virtual const std::vector<TensorId>& ReadsOf(const Step& step) const = 0;
  // What it makes new versions of; gradients are none.
  virtual const std::vector<TensorId>& MakesOf(const Step& step) const = 0;
  // Whether the step belongs to the backward pass wherever it stands.
  virtual bool IsBackward(const Step& step) const = 0;
  // What must be in memory while the step runs, whatever the plan: what it reads and makes, less
  // what it may write in place, and its workspace. Gradients are not included.
  virtual Bytes OwnNeedOf(const Step& step) const = 0;

  // Everything once, in the graph's own order: nothing is run again.
  virtual Schedule KeepAll() const = 0;
  virtual Timeline TimelineOf(const Schedule& schedule) const = 0;
  // What the versions of the timeline count as. Of a joint graph, what backward operations make in
  // their first runs counts as gradients.
  virtual std::vector<MemoryKind> KindsOf(const Schedule& schedule,
                                          const Timeline& timeline) const = 0;
  // kInvalidInput: it is no training step of the graph.
  virtual Result<Measured> Measure(const Schedule& schedule) const = 0;
  // Without the runs, beyond the first of each node, whose results nothing reads. The schedule
  // frees by liveness.
  virtual Schedule WithoutUnreadRuns(const Schedule& schedule) const = 0;
};

// Both refer to what they are given. `modules` may be null or empty.
std::unique_ptr<PlannedGraph> PlannedGraphOf(const TensorGraph& graph, const ModuleCalls* modules);
std::unique_ptr<PlannedGraph> PlannedGraphOf(const JointGraph& graph);

// "backward of conv1"; `has_run` says whether the step's node has run before.
std::string DescribeStep(const PlannedGraph& graph, const Step& step, bool has_run);

}  // namespace ckplan
