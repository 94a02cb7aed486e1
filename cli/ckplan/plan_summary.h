// A plan as text: its memory and time, with and without what no plan can change.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/common/terminal.h"
#include "lib/planning/plan/plan.h"
#include "lib/planning/planner/source.h"

namespace ckplan {

// What bounds the plan, and so what its figures are shown with.
enum class SummaryLimit {
  kPeak,   // Each peak also with constants.
  kTotal,  // --budget-total: the budget, too.
  kNeed,   // --memory: nothing, since the accounting below the summary adds it all up.
};

struct SummaryRequest {
  std::string budget_text;  // The budget as typed; empty if there was none.
  SummaryLimit limit = SummaryLimit::kPeak;
  std::optional<double> solve_seconds;  // Shown only on a terminal.
  bool is_verbose = false;              // Shows all groups, and settings that the planner chose.
};

// Shows the trade-off instead of a plan: the step that keeps everything, and the curve. `plan` is
// `best`'s without a budget.
std::string CurveText(const Source& source, const Plan& plan, const Terminal& terminal);

// `plan` must be a plan for the source's graph.
std::string PlanText(const Source& source, const Plan& plan, const SummaryRequest& request,
                     const Terminal& terminal);
std::string PlanMarkdown(const Source& source, const Plan& plan);
std::string PlanCsv(const Source& source, const Plan& plan);  // A heading and one row.

// Describes the model: "resnet50.onnx   opset 20   124 nodes   N=64". The request is a plan's or
// the source's own.
std::string ModelLine(const Source& source, const PlanRequest& request);

// Returns a note if the plan costs time without lowering keep-all's peak, otherwise "".
std::string SavesNothing(const PlanFigures& figures);

// Two sentences on the lower bounds that the plan's certificate proves, on time and on the peak,
// each with the plan's gap. Empty without a certificate.
std::vector<std::string> BoundTexts(const PlanFigures& figures);

// Returns 0 if the whole is 0.
double Ratio(int64_t part, int64_t whole);

// The ratio as a percentage with its sign: "+11.3%", "-40.1%", "0.0%".
std::string SignedPercent(double ratio);

}  // namespace ckplan
