// The flag --fail-on: parses limits as typed, and prints which of them hold.
//
// `ckplan check` takes these for a plan:
//   peak>16GiB, peak>60%, arena>18GB, total>24GiB, need>24GiB, need>rtx4090, overhead>5%
//   peak:+1%, arena:+1%, total:+1%     growth over the plan of --against; also by a size:
//   peak:+10MiB, time:+2%, curve:+1%
//
// `ckplan inspect` takes these for a model:
//   peak>16GiB, total>24GiB, need>24GiB, activations>8GiB, saved>8GiB, parameters>2GiB, warnings>0
//
// lib/planning/plan/threshold.h says what each of them is compared with.
#pragma once

#include <string>
#include <vector>

#include "cli/ckplan/options.h"
#include "cli/common/terminal.h"
#include "lib/base/result.h"
#include "lib/planning/plan/threshold.h"
#include "lib/planning/planner/source.h"

namespace ckplan {

enum class LimitSubject { kPlan, kModel };

// Returns the limits of --fail-on, of --max-peak ("peak>8GiB") and of --memory ("need>8GiB").
// kUsage: a text is not a limit on the subject.
Result<std::vector<Threshold>> ThresholdsIn(const Options& options, LimitSubject subject);
// kUsage: the text is not a limit on the subject.
Result<Threshold> ParseThreshold(const std::string& text,
                                 LimitSubject subject = LimitSubject::kPlan);

// Warns if a limit counts the optimizer's state, which the source does not say (UnknownState).
void WarnOfUnknownState(const std::vector<Threshold>& thresholds, const Source& source,
                        const Screen& screen);

// kUsage: a limit on growth, but neither an older plan nor a reason why there is none; or a limit
// on the growth of time between plans with costs from different models.
Result<std::vector<Verdict>> EvaluateFailOn(const std::vector<Threshold>& thresholds,
                                            const PlanFigures& figures, const PlanRequest& request,
                                            const OlderPlan& older, const NeedWithin& need = {});
std::vector<Verdict> EvaluateFailOn(const std::vector<Threshold>& thresholds,
                                    const ModelMeasures& model);

// Returns a line for each verdict: "FAIL peak>16GiB   peak 17.00 GiB ...". `label` stands before
// the limit, if it is not empty.
std::string VerdictLines(const std::vector<Verdict>& verdicts, const std::string& label,
                         const Terminal& terminal);
// Prints how many limits `path` violates, and which unless `is_reported`.
void PrintFailures(const std::string& path, const std::vector<Verdict>& verdicts, bool is_reported);

}  // namespace ckplan
