// A plan: everything needed to replay it, to check it, and to describe it to people.
//
// One struct serves forward graphs and joint graphs. A joint graph's schedule consists of
// runs, and its operations and values take the place of nodes and tensors.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/units.h"
#include "lib/planning/plan/certificate.h"
#include "lib/planning/plan/curve_point.h"
#include "lib/planning/plan/model_variant.h"
#include "lib/planning/plan/paper_figures.h"
#include "lib/planning/plan/request.h"
#include "lib/problem/graph/joint_graph.h"
#include "lib/problem/graph/tensor_graph.h"
#include "lib/problem/schedule/schedule.h"
#include "lib/problem/schedule/timeline.h"
#include "lib/problem/schedule/training_step.h"

namespace ckplan {

// The memory of the schedule under Chen's three strategies: see schedule/static_allocation.h.
struct StaticAllocations {
  Bytes none;
  Bytes inplace;
  Bytes sharing;

  bool operator==(const StaticAllocations&) const = default;
};

// What a plan that may move values to the host needs of it. All are zero if it moves none.
struct OffloadFigures {
  Bytes host_peak;
  Bytes host_arena;   // What the offsets of copies (Plan::host_offsets) need.
  Cost stall;         // Part of the overhead: the time that runs and drops wait for copies.
  Bytes transferred;  // Bytes of all copies, to the host and back.

  bool operator==(const OffloadFigures&) const = default;
};

struct PlanFigures {
  bool is_optimal = false;  // Within the class that `guarantee` names.
  std::string guarantee;    // "optimal canonical strategy for Eq. 2; costs rounded to 17 ns"
  Bytes peak;
  Bytes baseline_peak;  // The peak of keeping everything, in the model's own order.
  // Part of `peak`: the memory that the other micro-batches in flight keep for their backward. All
  // other figures and the plan are for one micro-batch.
  Bytes other_micro_batches;
  Bytes arena;
  std::optional<StaticAllocations> static_allocations;  // Absent in files that leave them out.
  // Cost of all forward runs beyond the first of each node; for a joint graph see assemble.h. With
  // transfers, the makespan beyond the cost of running each operation once.
  Cost overhead;
  Cost forward_cost;   // One forward pass.
  Cost backward_cost;  // One backward pass.
  std::optional<Cost> lower_bound_cost;
  std::optional<Certificate> certificate;  // Every plan by `best` has one, and no other plan has.
  // For plans by `best` without a budget: the points that the plan was chosen from, including its
  // own. Each needs more memory and less time than the one before.
  std::vector<CurvePoint> curve;
  ConstantMemory constants;
  Bytes optimizer_state;
  PaperFigures paper;
  std::optional<OffloadFigures> offload;  // Present if the request has a link to the host.
  // The setting of the algorithm's knob, given or found; absent if it has none or if the plan
  // belongs to none.
  std::optional<KnobSetting> setting;

  bool operator==(const PlanFigures&) const = default;
};

enum class NodeAction {
  // Runs forward once; outputs that backward needs stay in memory until then. An operation of a
  // joint graph runs once.
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

// The properties of a node that a plan repeats for readers without the graph. Names are well-formed
// UTF-8 even if the model's are not.
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

NodeLabel LabelOf(const TrainingStep& step, NodeId id);
IdVector<NodeId, NodeLabel> LabelsOf(const TrainingStep& step);

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
  // In order of allocation, without empty buffers; the sizes add up to the peak without the part of
  // other micro-batches.
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
  // One offset in the host's memory per copy, in the order of the `out` steps; see transfers.h.
  std::vector<Bytes> host_offsets;

  bool operator==(const Plan&) const = default;
};

// Returns the bytes of parameters, their gradients, optimizer state and inputs, with the undivided
// part of those that are divided among devices. No plan can change any of it.
Bytes TotalConstants(const ConstantMemory& constants, Bytes optimizer_state);
Bytes TotalConstants(const PlanFigures& figures);

}  // namespace ckplan
