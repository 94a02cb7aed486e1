// A plan as text: its memory and time, both without and with the part that no plan can change.
#pragma once

#include <optional>
#include <string>

#include "cli/common/terminal.h"
#include "lib/graph/tensor_graph.h"
#include "lib/plan/plan.h"

namespace ckplan {

struct SummaryRequest {
  std::string budget_text;              // The budget as it was typed; empty if none was.
  bool includes_constants = false;      // --budget-total
  std::optional<double> solve_seconds;  // Shown on a terminal alone.
  bool is_verbose = false;              // Shows all groups, and a setting that was found.
};

std::string PlanText(const TensorGraph& graph, const Plan& plan, const SummaryRequest& request,
                     const Terminal& terminal);
std::string PlanMarkdown(const TensorGraph& graph, const Plan& plan);
std::string PlanCsv(const TensorGraph& graph, const Plan& plan);  // A heading and one row.

// "resnet50.onnx   opset 20   124 nodes   N=64"
std::string ModelLine(const TensorGraph& graph, const ModelIdentity& model,
                      const PlanRequest& request);

// What to say of a plan whose peak is not below keep-all's, unless it costs no time either; else
// empty.
std::string SavesNothing(const PlanFigures& figures);

// The ratio as a percentage with its sign: "+11.3%", "-40.1%", "0.0%".
std::string SignedPercent(double ratio);

}  // namespace ckplan
