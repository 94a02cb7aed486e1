// What `ckplan explain` prints.
#pragma once

#include <string>
#include <vector>

#include "cli/common/terminal.h"
#include "lib/planning/explain/explain_peak.h"
#include "lib/planning/explain/explain_tensor.h"
#include "lib/planning/explain/find_subjects.h"
#include "lib/planning/explain/traced_plan.h"
#include "lib/planning/planner/source.h"

namespace ckplan {

// A subject that was asked for by name, with the explanation of each of its tensors.
struct ExplainedSubject {
  Subject subject;
  std::vector<TensorExplanation> tensors;  // Parallel to Subject::tensors.
};

std::string PeakText(const Source& source, const TracedPlan& traced, const PeakExplanation& peak,
                     const Screen& screen);
// Prints a few subjects one after the other, and many as a table.
std::string SubjectsText(const Source& source, const TracedPlan& traced,
                         const std::vector<ExplainedSubject>& subjects, const Screen& screen);

// schemas/explain.schema.json
std::string PeakJson(const TracedPlan& traced, const PeakExplanation& peak);
std::string SubjectsJson(const TracedPlan& traced, const std::vector<ExplainedSubject>& subjects);

}  // namespace ckplan
