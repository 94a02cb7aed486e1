// What all that `ckplan explain` prints as text begins with, and is written by.
#pragma once

#include <string>
#include <string_view>

#include "cli/common/terminal.h"
#include "cli/common/text_table.h"
#include "lib/base/units.h"
#include "lib/explain/traced_plan.h"
#include "lib/planner/source.h"

namespace ckplan {

// What it writes grows in `text_`.
class ExplanationWriter {
 protected:
  // Keeps references to all three. Writes the model's line and the plan's.
  ExplanationWriter(const Source& source, const TracedPlan& traced, const Screen& screen);

  // Folded to the screen's width, the label before the first line.
  void Row(std::string_view label, std::string_view value);
  void Table(const TextTable& table);

  // "step 61 (backward of conv1)"
  std::string StepText(size_t step) const;
  // In per cent of a step.
  std::string TimeText(Cost cost) const;
  std::string KindText(MemoryKind kind) const;

  Cost StepCost() const { return figures_.forward_cost + figures_.backward_cost; }
  Cost Added(const Measured& then) const { return then.overhead - figures_.overhead; }

  const TracedPlan& traced_;
  const PlannedGraph& graph_;
  const PlanFigures& figures_;
  const Screen& screen_;
  std::string text_;
};

}  // namespace ckplan
