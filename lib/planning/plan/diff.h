// What changed between two plans.
//
// Idea. Nodes are matched by the names of their tensors, so plans of models that have grown can be
// compared as well, and by structure where names differ (structural_match.h). No graph is needed,
// only what plan files say of themselves (PlanDigest).
//
// Two figures measure a change:
//   held      A node's results are held from its forward to its backward step where its action is
//             keep. A change from keep to anything else frees their bytes in between.
//   at_peak   How many more bytes of the node's results are in memory at the new plan's peak
//             than at the old plan's, which is another moment. Together with the rest (nodes that
//             are treated as before, gradients, workspace, other micro-batches) it is exactly the
//             change of the peak: sum of at_peak + rest = new peak - old peak.
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

// The part of a plan that can be read from its file without the graph.
struct PlanDigest {
  struct Row {
    std::string name;    // The node's name, or that of its first output if it has none.
    std::string tensor;  // Its first output.
    std::string op;
    NodeDecision decision;
    Bytes bytes;             // The size of all its outputs together.
    Bytes at_peak;           // The size of those outputs that are in memory at the peak.
    Bytes moved = Bytes(0);  // The size of those outputs that are copied to the host.
  };
  // What is in memory at the peak in addition to the rows' tensors.
  struct PeakRest {
    Bytes gradients;
    Bytes workspace;
  };
  PlanRequest request;
  ModelIdentity model;
  PlanFigures figures;
  std::vector<Row> rows;
  std::optional<PeakRest> rest;  // Absent if the file does not say what is in memory at the peak.
  bool is_joint = false;         // The rows are operations of a joint graph, and not nodes.
};

// In a joint graph, a result is held if its operation runs once and it is not moved to the host.
PlanDigest DigestOf(const TrainingStep& step, const Plan& plan);

struct NodeChange {
  enum class Kind {
    // Held in the new plan and not in the old one, or held in both with different bytes.
    kKept,
    kNotKept,     // Held in the old plan, not in the new one.
    kRecomputed,  // Held in neither, but run a different number of times.
  };
  Kind kind = Kind::kRecomputed;
  std::string name;
  // Forward runs; 0 if the plan's model has no such node.
  int32_t old_runs = 0;
  int32_t new_runs = 0;
  Bytes held;     // How many more bytes are held; negative if fewer.
  Bytes at_peak;  // How many more bytes are in memory at the peak; negative if fewer.
  Bytes moved;    // How many more bytes are copied to the host; negative if fewer.
};

// The part of the peak's change that no change of a node accounts for: new minus old.
struct RestAtPeak {
  // Results of nodes that are treated as before, but are live at only one of the peaks.
  Bytes tensors;
  Bytes gradients;
  Bytes workspace;
  Bytes other_micro_batches;

  Bytes sum() const { return tensors + gradients + workspace + other_micro_batches; }
  bool operator==(const RestAtPeak&) const = default;
};

struct PlanDiff {
  bool has_same_model = false;
  bool has_same_costs = false;  // One cost model for both, so their times can be compared.
  // Sentences that say what else differs between the requests, and how that affects the figures.
  std::vector<std::string> differences;
  // Every field in which the requests differ.
  std::vector<RequestDifference> request;
  // False if the rows of one plan are nodes and those of the other are operations, which have
  // backward operations among them and are held by another rule. Then there are no changes of
  // nodes, and no rest.
  bool compares_nodes = true;
  int64_t paired_by_structure = 0;  // Number of nodes that are matched although their names differ.
  int64_t old_kept = 0;             // Number of nodes whose results are held.
  int64_t new_kept = 0;
  // Sorted by the larger of the two sizes, then by that at the peak, largest first; then by name.
  std::vector<NodeChange> changes;
  // Absent if one of the plans does not say what is in memory at its peak; at_peak is then 0.
  std::optional<RestAtPeak> rest;
  // What the plans' curves add within the same peaks. Empty if a plan has no curve, or if their
  // times do not compare.
  std::vector<CurveChange> curve;
  // Whether any figure or node differs, or nodes are not compared.
  bool has_changes = false;
};

PlanDiff DiffPlans(const PlanDigest& older, const PlanDigest& newer);

// The time of the recomputation that a plan adds, as a share of a training step's time without it:
// 0.05 for 5 %.
double StepOverheadRatio(const PlanFigures& figures);

}  // namespace ckplan
