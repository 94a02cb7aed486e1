// The figures of one model, and how they are shown.
#pragma once

#include <string>
#include <vector>

#include "cli/common/terminal.h"
#include "lib/base/units.h"
#include "lib/plan/plan.h"
#include "lib/planner/source.h"

namespace ckplan {

struct OperatorRow {
  std::string op;
  int64_t count = 0;
  Bytes outputs;  // Activations and statistics that its nodes make.
  Cost forward_cost;
  Cost backward_cost;
};

struct TensorRow {
  std::string name;
  std::string producer;  // Operator; empty for an input.
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
  ConstantMemory constants;
  Bytes optimizer_state;
  Cost forward_cost;
  Cost backward_cost;
  std::vector<OperatorRow> operators;  // Costliest first.
  std::vector<TensorRow> largest;      // The ten largest, largest first.
  std::vector<std::string> warnings;
};

// As the source's request demands.
Inspection Inspect(const Source& source);

// One model: figures, operators, largest tensors. Several: the figures side by side.
std::string InspectionText(const std::vector<Inspection>& inspections, const Screen& screen);
std::string InspectionMarkdown(const std::vector<Inspection>& inspections);
// An object for one model, an array of them for several.
std::string InspectionJson(const std::vector<Inspection>& inspections);
// The operators of all models, a row for each.
std::string InspectionCsv(const std::vector<Inspection>& inspections);

}  // namespace ckplan
