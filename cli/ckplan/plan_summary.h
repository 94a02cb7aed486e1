// A plan as text: its memory and time, both without and with the part that no plan can change.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/common/terminal.h"
#include "lib/plan/plan.h"
#include "lib/planner/source.h"

namespace ckplan {

struct SummaryRequest {
  std::string budget_text;              // The budget as it was typed; empty if none was.
  bool includes_constants = false;      // --budget-total
  std::optional<double> solve_seconds;  // Shown on a terminal alone.
  bool is_verbose = false;              // Shows all groups, and a setting that was found.
};

// `plan` is one for the source's graph.
std::string PlanText(const Source& source, const Plan& plan, const SummaryRequest& request,
                     const Terminal& terminal);
std::string PlanMarkdown(const Source& source, const Plan& plan);
std::string PlanCsv(const Source& source, const Plan& plan);  // A heading and one row.

// "resnet50.onnx   opset 20   124 nodes   N=64"; the request is a plan's, or the source's own.
std::string ModelLine(const Source& source, const PlanRequest& request);

// What to say of a plan whose peak is not below keep-all's, unless it costs no time either; else
// empty.
std::string SavesNothing(const PlanFigures& figures);

// What no plan can go below by the plan's certificate, and how far the plan is above it: a sentence
// on its time and one on its peak. Empty without a certificate.
std::vector<std::string> BoundTexts(const PlanFigures& figures);

// 0 where the whole is.
double Ratio(int64_t part, int64_t whole);

// The ratio as a percentage with its sign: "+11.3%", "-40.1%", "0.0%".
std::string SignedPercent(double ratio);

}  // namespace ckplan
