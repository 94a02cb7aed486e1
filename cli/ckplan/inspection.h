// The figures of one model, and their output forms.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/ckplan/threshold.h"
#include "cli/common/terminal.h"
#include "lib/base/units.h"
#include "lib/plan/plan.h"
#include "lib/planner/source.h"

namespace ckplan {

struct OperatorRow {
  std::string op;
  int64_t count = 0;
  Bytes outputs;  // The size of the activations and statistics, or values, that its nodes compute.
  Cost forward_cost;
  Cost backward_cost;
};

struct TensorRow {
  std::string name;
  std::string producer;  // The operator that computes it; empty for an input.
  Bytes bytes;
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
  std::vector<std::string> warnings;
  std::vector<Verdict> verdicts;  // One for each limit of --fail-on.
};

// The measures that limits are compared with.
ModelMeasures MeasuresOf(const Inspection& inspection);

// Collects the figures of the source, with the settings of its request.
Inspection Inspect(const Source& source);

// Shows figures, operators and largest tensors of one model, or the figures of several side by
// side, followed by the verdicts.
std::string InspectionText(const std::vector<Inspection>& inspections, const Screen& screen);
std::string InspectionMarkdown(const std::vector<Inspection>& inspections);
// Returns a JSON object for one model, an array of objects for several.
std::string InspectionJson(const std::vector<Inspection>& inspections);
// Returns one row for each operator of each model.
std::string InspectionCsv(const std::vector<Inspection>& inspections);

}  // namespace ckplan
