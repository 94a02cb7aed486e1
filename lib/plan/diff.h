// What changed between two plans.
//
// Idea. Nodes are matched by the names of their tensors, so plans of models that have grown can be
// compared as well; no graph is needed, only what plan files say of themselves (PlanDigest).
//
// Two figures measure a change:
//   held      A node's results are held from its forward to its backward step where its action is
//             keep. A change from keep to anything else frees their bytes in between.
//   at_peak   How many more bytes of the node's results are in memory at the new plan's peak
//             than at the old plan's, which is another moment. Together with the rest (nodes that
//             are treated as before, gradients, workspace) it is exactly the change of the peak:
//             sum of at_peak + rest = new peak - old peak.
//
// Cost: O(n log n) for n nodes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/units.h"
#include "lib/plan/plan.h"

namespace ckplan {

// What can be read from a plan file without its graph.
struct PlanDigest {
  struct Row {
    std::string name;    // The node's name, or that of its first output if it has none.
    std::string tensor;  // Its first output.
    std::string op;
    NodeDecision decision;
    Bytes bytes;    // All its outputs together.
    Bytes at_peak;  // Bytes of the outputs that are in memory at the peak.
  };
  // What is in memory at the peak beside the rows' tensors.
  struct PeakRest {
    Bytes gradients;
    Bytes workspace;
  };
  PlanRequest request;
  ModelIdentity model;
  PlanFigures figures;
  std::vector<Row> rows;
  std::optional<PeakRest> rest;  // Nothing: the file does not say what is in memory at the peak.
};

PlanDigest DigestOf(const TensorGraph& graph, const Plan& plan);

struct NodeChange {
  enum class Kind {
    kKept,        // Held in the new plan, not in the old one; or held in both, by other bytes.
    kNotKept,     // Held in the old plan, not in the new one.
    kRecomputed,  // Held in neither, but run another number of times.
  };
  Kind kind = Kind::kRecomputed;
  std::string name;
  // Forward runs; 0 where the plan's model has no such node.
  int32_t old_runs = 0;
  int32_t new_runs = 0;
  Bytes held;     // By how much more is held; negative: less.
  Bytes at_peak;  // By how much more of it is in memory at the peak; negative: less.
};

// The part of the peak's change that the changes of nodes do not account for. Signed: new less old.
struct RestAtPeak {
  Bytes tensors;  // Results of nodes that are treated as before, but live at one peak alone.
  Bytes gradients;
  Bytes workspace;

  Bytes sum() const { return tensors + gradients + workspace; }
  bool operator==(const RestAtPeak&) const = default;
};

struct PlanDiff {
  bool has_same_model = false;
  bool has_same_costs = false;  // One cost model for both, so their times can be compared.
  // What else the plans were asked for differently, and what that does to their figures: sentences.
  std::vector<std::string> differences;
  int64_t old_kept = 0;  // Nodes whose results are held.
  int64_t new_kept = 0;
  // The most bytes at the peak first, then the most held, then by name.
  std::vector<NodeChange> changes;
  // Nothing if one of the plans does not say what is in memory at its peak; at_peak is 0 then.
  std::optional<RestAtPeak> rest;
  // Whether any figure or node differs.
  bool has_changes = false;
};

PlanDiff DiffPlans(const PlanDigest& older, const PlanDigest& newer);

// Time of a training step without recomputation that a plan adds: 0.05 for 5 %.
double StepOverheadRatio(const PlanFigures& figures);

}  // namespace ckplan
