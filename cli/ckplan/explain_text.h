// What `ckplan explain` prints.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/common/terminal.h"
#include "cli/common/text_table.h"
#include "lib/base/units.h"
#include "lib/planning/explain/explain_peak.h"
#include "lib/planning/explain/explain_tensor.h"
#include "lib/planning/explain/find_subjects.h"
#include "lib/planning/explain/traced_plan.h"
#include "lib/planning/planner/source.h"
#include "lib/problem/schedule/simulate.h"
#include "lib/problem/schedule/training_step.h"

namespace ckplan {

// A subject that the user named, with the explanation of each of its tensors.
struct ExplainedSubject {
  Subject subject;
  std::vector<TensorExplanation> tensors;  // Parallel to Subject::tensors.
};

std::string PeakText(const Source& source, const TracedPlan& traced, const PeakExplanation& peak,
                     const Screen& screen);
// Prints a few subjects one by one, and many as a table.
std::string SubjectsText(const Source& source, const TracedPlan& traced,
                         const std::vector<ExplainedSubject>& subjects, const Screen& screen);

// schemas/explain.schema.json
std::string PeakJson(const TracedPlan& traced, const PeakExplanation& peak);
std::string SubjectsJson(const TracedPlan& traced, const std::vector<ExplainedSubject>& subjects);

// The common beginning of all texts that `ckplan explain` prints, and the functions that write
// them.

// The text grows in `text_`.
class ExplanationWriter {
 protected:
  // Keeps references to all three arguments. Writes the lines of the model and of the plan.
  ExplanationWriter(const Source& source, const TracedPlan& traced, const Screen& screen);

  // Writes a paragraph folded to the screen's width, with the label before its first line.
  void Row(std::string_view label, std::string_view value);
  void Table(const TextTable& table);
  // Explains the columns of a table, below it.
  void Note(std::string_view note);

  // "step 61 (backward of conv1)"
  std::string StepText(size_t step) const;
  // A percentage of a step.
  std::string TimeText(Cost cost) const;
  std::string KindText(MemoryKind kind) const;

  Cost StepCost() const { return figures_.forward_cost + figures_.backward_cost; }
  Cost Added(const Simulation& then) const { return then.overhead - figures_.overhead; }

  const TracedPlan& traced_;
  const TrainingStep graph_;
  const PlanFigures& figures_;
  const Screen& screen_;
  std::string text_;
};

}  // namespace ckplan
