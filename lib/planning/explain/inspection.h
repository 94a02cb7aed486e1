// The figures of one model.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/base/units.h"
#include "lib/planning/plan/accounting.h"
#include "lib/planning/plan/plan.h"
#include "lib/planning/plan/threshold.h"
#include "lib/problem/graph/joint_graph.h"
#include "lib/problem/graph/origins.h"
#include "lib/problem/graph/tensor_graph.h"
#include "lib/problem/schedule/training_step.h"

namespace ckplan {

struct OperatorRow {
  std::string op;
  int64_t count = 0;
  Bytes outputs;  // Size of its nodes' activations and statistics, or values.
  Cost forward_cost;
  Cost backward_cost;
};

struct TensorRow {
  std::string name;
  std::string producer;  // The operator that computes it; empty for an input.
  Bytes bytes;
};

// Nodes of one operator that replace file operators.
struct RestoredRow {
  std::string op;
  std::string origin;  // Empty if recognised by their form; see RestoredOperation.
  std::vector<std::string> replaced;
  int64_t count = 0;
};

struct Inspection {
  ModelIdentity model;
  PlanRequest request;
  int64_t node_count = 0;
  int64_t tensor_count = 0;
  Bytes activations;
  Bytes statistics;
  Bytes saved_for_backward;
  Bytes keep_all_peak;
  // Memory of the forward pass alone; unknown for a joint graph.
  std::optional<StaticAllocations> prediction;
  ConstantMemory constants;
  Bytes optimizer_state;
  Cost forward_cost;
  Cost backward_cost;
  std::vector<OperatorRow> operators;  // Costliest first.
  std::vector<TensorRow> largest;      // The ten largest, largest first.
  std::vector<RestoredRow> restored;   // The most frequent first.
  std::vector<std::string> warnings;
  std::vector<Verdict> verdicts;         // One per --fail-on limit.
  std::optional<Accounting> accounting;  // For keep-all; set with --memory.
};

// The measures that limits apply to.
ModelMeasures MeasuresOf(const Inspection& inspection);

// Collects the figures of the step. The caller adds those that need more than the graph: `model`,
// `request`, `keep_all_peak`, `optimizer_state`, `restored`, `warnings` and `verdicts`.
Inspection InspectGraph(const TrainingStep& step);

std::vector<RestoredRow> CountRestored(const std::vector<RestoredOperation>& restored);

}  // namespace ckplan
