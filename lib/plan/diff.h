// What changed between two plans.
//
// Idea. Plans are told apart by the names of their nodes, so plans of models that have grown can be
// compared as well; no graph is needed, only what plan files say of themselves (PlanDigest).
//
// A node's results are held from its forward to its backward step where its action is keep. So a
// change from keep to anything else frees the bytes of its results in between, which is where the
// peak lies, and a change to keep takes them.
//
// Cost: O(n log n) for n nodes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/base/units.h"
#include "lib/plan/plan.h"

namespace ckplan {

// What a plan file tells without its graph.
struct PlanDigest {
  struct Row {
    std::string name;
    std::string op;
    NodeDecision decision;
    Bytes bytes;  // Of all its outputs.
  };
  PlanRequest request;
  ModelIdentity model;
  PlanFigures figures;
  std::vector<Row> rows;
};

PlanDigest DigestOf(const TensorGraph& graph, const Plan& plan);

struct NodeChange {
  enum class Kind {
    kKept,        // Held in the new plan, not in the old one.
    kNotKept,     // Held in the old plan, not in the new one.
    kRecomputed,  // Held in neither, but run another number of times.
  };
  Kind kind = Kind::kRecomputed;
  std::string name;
  // Forward runs; 0 where the plan's model has no such node.
  int32_t old_runs = 0;
  int32_t new_runs = 0;
  Bytes held;  // By how much more is held; negative: less.
};

struct PlanDiff {
  bool has_same_model = false;
  int64_t old_kept = 0;  // Nodes whose results are held.
  int64_t new_kept = 0;
  std::vector<NodeChange> changes;  // The most bytes first, then by name.
  // Whether any figure or node differs.
  bool has_changes = false;
};

PlanDiff DiffPlans(const PlanDigest& older, const PlanDigest& newer);

// Time of a training step without recomputation that a plan adds: 0.05 for 5 %.
double StepOverheadRatio(const PlanFigures& figures);

}  // namespace ckplan
