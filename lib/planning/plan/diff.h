// What changed between two plans.
//
// Nodes are matched by the names of their tensors, so that plans of an extended model can be
// compared, and by structure if names differ (structural_match.h). No graph is needed, only what
// plan files contain (PlanDigest).
//
// Two figures measure a change:
//   held      Results of nodes with the action keep are held from the forward to the backward
//             step. A change from keep to another action frees their bytes in between.
//   at_peak   How many more bytes of the node's results are in memory at the new plan's peak
//             than at the old plan's, which may be a different moment. Together with the rest
//             (nodes treated as before, gradients, workspace, other micro-batches), it explains
//             the change of the peak: sum of at_peak + rest = new peak - old peak.
//
// Cost: O(n log n) for n nodes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/units.h"
#include "lib/planning/plan/curve_point.h"
#include "lib/planning/plan/plan.h"
#include "lib/planning/plan/request_fields.h"
#include "lib/problem/schedule/training_step.h"

namespace ckplan {

// The part of a plan that its file contains, without the graph.
struct PlanDigest {
  struct Row {
    std::string name;    // The node's name, or that of its first output if it has none.
    std::string tensor;  // Its first output.
    std::string op;
    NodeDecision decision;
    Bytes bytes;             // Total size of its outputs.
    Bytes at_peak;           // Size of its outputs in memory at the peak.
    Bytes moved = Bytes(0);  // Size of its outputs copied to the host.
  };
  // Memory at the peak that belongs to no row.
  struct PeakRest {
    Bytes gradients;
    Bytes workspace;
  };
  PlanRequest request;
  ModelIdentity model;
  PlanFigures figures;
  std::vector<Row> rows;
  std::optional<PeakRest> rest;  // Absent if the file doesn't list the memory at the peak.
  bool is_joint = false;         // The rows are operations of a joint graph.
};

// Builds a plan's digest. A result in a joint graph is held if its operation runs once and it is
// not moved to the host.
PlanDigest DigestOf(const TrainingStep& step, const Plan& plan);

struct NodeChange {
  enum class Kind {
    // Newly held in the new plan, or held in both with different sizes.
    kKept,
    kNotKept,     // Held only in the old plan.
    kRecomputed,  // Held in neither plan, with a different number of runs.
  };
  Kind kind = Kind::kRecomputed;
  std::string name;
  // Forward runs; 0 if the plan does not have the node.
  int32_t old_runs = 0;
  int32_t new_runs = 0;
  Bytes held;     // How many more bytes are held; negative if fewer.
  Bytes at_peak;  // How many more bytes are in memory at the peak; negative if fewer.
  Bytes moved;    // How many more bytes are copied to the host; negative if fewer.
};

// The part of the peak's change, new minus old, that no node's change explains.
struct RestAtPeak {
  // Results of nodes that are treated as before but are live at only one of the peaks.
  Bytes tensors;
  Bytes gradients;
  Bytes workspace;
  Bytes other_micro_batches;

  Bytes sum() const { return tensors + gradients + workspace + other_micro_batches; }
  bool operator==(const RestAtPeak&) const = default;
};

struct PlanDiff {
  bool has_same_model = false;
  bool has_same_costs = false;  // The same cost model, so their times are comparable.
  // Sentences that say how the requests differ and what that means for the figures.
  std::vector<std::string> differences;
  // Every field in which the requests differ.
  std::vector<RequestDifference> request;
  // False if one plan's rows are nodes and the other's are operations, which can't be matched. Then
  // `changes` and `rest` are empty.
  bool compares_nodes = true;
  int64_t paired_by_structure = 0;  // Nodes matched despite different names.
  int64_t old_kept = 0;             // Nodes whose results are held.
  int64_t new_kept = 0;
  // Sorted by the larger of the two sizes, then by size at the peak, largest first, then by name.
  std::vector<NodeChange> changes;
  // Absent if a plan does not list the memory at its peak; at_peak is then 0.
  std::optional<RestAtPeak> rest;
  // Overhead of both curves within the same peaks. Empty if a plan has no curve or if the plans'
  // times are not comparable.
  std::vector<CurveChange> curve;
  // True if any figure or node differs, or if nodes are not compared.
  bool has_changes = false;
};

PlanDiff DiffPlans(const PlanDigest& older, const PlanDigest& newer);

// Returns the time that recomputation adds, relative to a training step without it: 0.05 for 5 %.
double StepOverheadRatio(const PlanFigures& figures);

}  // namespace ckplan
