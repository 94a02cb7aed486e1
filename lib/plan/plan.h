// A plan: everything needed to replay it, to check it, and to describe it to people.
//
// The same struct serves forward graphs and joint graphs: for the latter the schedule consists of
// runs, and what is said of nodes and tensors is said of operations and values.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/units.h"
#include "lib/graph/tensor_graph.h"
#include "lib/joint/joint_graph.h"
#include "lib/plan/certificate.h"
#include "lib/plan/request.h"
#include "lib/schedule/schedule.h"
#include "lib/schedule/timeline.h"

namespace ckplan {

// Which model a plan is for.
struct ModelIdentity {
  std::string name;                       // File name without folders.
  std::string sha256;                     // Of a model's graph, or of a graph file's bytes.
  std::map<std::string, int64_t> opsets;  // Domain ("" is ai.onnx) to version.

  bool operator==(const ModelIdentity&) const = default;
};

// The opsets as plan files have them: names of domains are well-formed UTF-8 there. Of several that
// are written the same the first counts.
std::map<std::string, int64_t> OpsetsInFiles(const ModelIdentity& model);

// An algorithm's own objective, by its paper's definition.
struct PaperFigures {
  std::optional<Bytes> budget;
  Bytes peak;
  Cost overhead;

  bool operator==(const PaperFigures&) const = default;
};

// What Chen's three allocation strategies need for the schedule: see schedule/static_allocation.h.
struct StaticAllocations {
  Bytes none;
  Bytes inplace;
  Bytes sharing;

  bool operator==(const StaticAllocations&) const = default;
};

// A plan that was found beside another: what time it takes to need no more memory.
struct CurvePoint {
  Bytes peak;
  Cost overhead;

  bool operator==(const CurvePoint&) const = default;
};

struct PlanFigures {
  bool is_optimal = false;  // Within the class that `guarantee` names.
  std::string guarantee;    // "optimal canonical strategy for Eq. 2; costs rounded to 17 ns"
  Bytes peak;
  Bytes baseline_peak;  // The peak of keeping everything, in the model's own order.
  // Of `peak`: what the other micro-batches under way keep for their backward. All else of the
  // peak, and of the plan, is of one micro-batch.
  Bytes other_micro_batches;
  Bytes arena;
  std::optional<StaticAllocations> static_allocations;  // Absent in files that leave them out.
  // Cost of all forward runs beyond the first of each node; for a joint graph see assemble_joint.h.
  Cost overhead;
  Cost forward_cost;   // One forward pass.
  Cost backward_cost;  // One backward pass.
  std::optional<Cost> lower_bound_cost;
  std::optional<Certificate> certificate;  // Of plans by `best`, which all have a bound; no others.
  // Of plans by `best` for no budget: those that it was chosen from, and itself. Each needs more
  // memory than the one before, and takes less time.
  std::vector<CurvePoint> curve;
  ConstantMemory constants;
  Bytes optimizer_state;
  PaperFigures paper;
  // Of the algorithm's knob, given or found; absent if it has none, or if the plan belongs to none.
  std::optional<KnobSetting> setting;

  bool operator==(const PlanFigures&) const = default;
};

enum class NodeAction {
  // Runs forward once; outputs that backward needs stay in memory until then. Of a joint graph's
  // operations: runs once.
  kKeep,
  kRecompute,  // Runs forward more than once.
  kTransient,  // Runs forward once; none of its outputs is needed after the forward pass.
  kDrop,       // Never runs: an operation of a joint graph that no result needs.
};

std::string_view NameOf(NodeAction action);  // "keep", "recompute", "transient", "drop"

struct NodeDecision {
  NodeAction action = NodeAction::kKeep;
  int32_t segment = 0;          // 0-based, in forward order.
  int32_t recompute_count = 0;  // Forward runs beyond the first, or runs of an operation.

  bool operator==(const NodeDecision&) const = default;
};

// What a plan repeats of a node of its graph, for those who read the plan without the graph. Names
// are well-formed UTF-8, whatever the model has.
struct NodeLabel {
  struct Output {
    int64_t file_id = 0;
    std::string name;
    Bytes bytes;

    bool operator==(const Output&) const = default;
  };
  std::string name;
  std::string op;
  std::vector<Output> outputs;

  bool operator==(const NodeLabel&) const = default;
};

NodeLabel LabelOf(const TensorGraph& graph, NodeId id);
IdVector<NodeId, NodeLabel> LabelsOf(const TensorGraph& graph);
NodeLabel LabelOf(const JointGraph& graph, OpId id);
IdVector<NodeId, NodeLabel> LabelsOf(const JointGraph& graph);

// One buffer in memory.
struct LiveBuffer {
  BufferKind kind = BufferKind::kTensor;
  int32_t index = -1;  // The tensor in it, or whose gradient it holds; for kWorkspace, the node.
  Bytes bytes;

  static LiveBuffer Tensor(TensorId id, Bytes b) { return {BufferKind::kTensor, id.index(), b}; }
  static LiveBuffer Gradient(TensorId of, Bytes b) {
    return {BufferKind::kGradient, of.index(), b};
  }
  static LiveBuffer Workspace(NodeId of, Bytes b) {
    return {BufferKind::kWorkspace, of.index(), b};
  }
  TensorId tensor() const { return TensorId(index); }
  NodeId node() const { return NodeId(index); }
  bool operator==(const LiveBuffer&) const = default;
};

// The first moment at which memory use reaches the peak.
struct PeakMoment {
  int32_t step = 0;  // Index into Schedule::steps.
  // In order of allocation, without empty buffers; their sizes add up to the peak, but for what
  // other micro-batches keep.
  std::vector<LiveBuffer> live;

  bool operator==(const PeakMoment&) const = default;
};

struct Plan {
  PlanRequest request;
  ModelIdentity model;
  PlanFigures figures;
  IdVector<NodeId, NodeDecision> decisions;
  IdVector<NodeId, NodeLabel> labels;
  Schedule schedule;
  std::optional<PeakMoment> peak;  // Absent in files that leave it out.
  // One offset per buffer of the schedule's Timeline, in order of allocation; see timeline.h.
  std::vector<Bytes> offsets;

  bool operator==(const Plan&) const = default;
};

// What the optimizer keeps in addition to the parameters: zero, one or two values for each value
// that it keeps state for.
Bytes OptimizerState(Optimizer optimizer, Bytes optimized);

// The points that no other one equals or betters, by increasing peak.
std::vector<CurvePoint> FrontOf(std::vector<CurvePoint> points);

// Parameters, their gradients, optimizer state, inputs and, where devices divide them, what of them
// is whole all the same: no plan can change any of it.
Bytes TotalConstants(const ConstantMemory& constants, Bytes optimizer_state);
Bytes TotalConstants(const PlanFigures& figures);

}  // namespace ckplan
