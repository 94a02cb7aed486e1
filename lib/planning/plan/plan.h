// A plan: everything needed to replay it, check it and describe it to people.
//
// The struct serves forward graphs and joint graphs. A joint graph's schedule consists of runs, and
// its operations and values replace nodes and tensors.
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

// The schedule's memory under Chen's three allocation strategies: see schedule/static_allocation.h.
struct StaticAllocations {
  Bytes none;
  Bytes inplace;
  Bytes sharing;

  bool operator==(const StaticAllocations&) const = default;
};

// What moving values to the host costs. All zero if the plan moves none.
struct OffloadFigures {
  Bytes host_peak;
  Bytes host_arena;   // Size of host memory with Plan::host_offsets.
  Cost stall;         // Part of the overhead: time spent waiting for copies.
  Bytes transferred;  // Bytes of all copies, to the host and back.

  bool operator==(const OffloadFigures&) const = default;
};

struct PlanFigures {
  bool is_optimal = false;  // In the class that `guarantee` names.
  std::string guarantee;    // "optimal canonical strategy for Eq. 2; costs rounded to 17 ns"
  Bytes peak;
  Bytes baseline_peak;  // The keep-all peak in the model's own order.
  // Part of `peak`: memory that other micro-batches in flight keep for their backward. All other
  // figures and the plan are for one micro-batch.
  Bytes other_micro_batches;
  Bytes arena;
  std::optional<StaticAllocations> static_allocations;  // Absent if the file omits them.
  // Cost of all forward runs of each node beyond the first; for a joint graph see assemble.h. With
  // transfers, the makespan beyond the cost of running each operation once.
  Cost overhead;
  Cost forward_cost;   // One forward pass.
  Cost backward_cost;  // One backward pass.
  std::optional<Cost> lower_bound_cost;
  std::optional<Certificate> certificate;  // Only for plans by `best`.
  // For plans by `best` without a budget: the points that the plan was chosen from, including
  // itself. Each has more memory and less time than the one before.
  std::vector<CurvePoint> curve;
  ConstantMemory constants;
  Bytes optimizer_state;
  PaperFigures paper;
  std::optional<OffloadFigures> offload;  // Present if the request has a link to the host.
  // The setting of the algorithm's knob, given or found. Absent without a knob, or if the plan does
  // not correspond to a setting.
  std::optional<KnobSetting> setting;

  bool operator==(const PlanFigures&) const = default;
};

enum class NodeAction {
  // Runs forward once, and outputs that backward needs stay in memory until then. In a joint graph:
  // runs once.
  kKeep,
  kRecompute,  // Runs forward more than once.
  kTransient,  // Runs forward once; backward needs none of its outputs.
  kDrop,       // Never runs: a joint graph's operation that no result needs.
};

std::string_view NameOf(NodeAction action);  // "keep", "recompute", "transient", "drop"

struct NodeDecision {
  NodeAction action = NodeAction::kKeep;
  int32_t segment = 0;          // 0-based, in forward order.
  int32_t recompute_count = 0;  // Forward runs (or an operation's runs) beyond the first.

  bool operator==(const NodeDecision&) const = default;
};

// The properties of a node that a plan repeats for readers without the graph. Names are valid UTF-8
// even if the model's are not.
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
  int32_t index = -1;  // The tensor, or the gradient's tensor; for kWorkspace, the node.
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
  // In order of allocation, without empty buffers. The sizes add up to the peak minus the part of
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
  std::optional<PeakMoment> peak;  // Absent if the file omits it.
  // One offset per buffer of the schedule's Timeline (timeline.h), in order of allocation.
  std::vector<Bytes> offsets;
  // One offset in host memory per copy (transfers.h), in the order of the `out` steps.
  std::vector<Bytes> host_offsets;

  bool operator==(const Plan&) const = default;
};

// Returns the bytes of parameters, their gradients, optimizer state, inputs and unsharded
// parameters. No plan can change them.
Bytes TotalConstants(const ConstantMemory& constants, Bytes optimizer_state);
Bytes TotalConstants(const PlanFigures& figures);

}  // namespace ckplan
