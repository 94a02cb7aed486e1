// The difference between two plans as text: for the screen, and as Markdown for a pull request.
#pragma once

#include <string>

#include "cli/common/terminal.h"
#include "lib/planning/plan/diff.h"
#include "lib/planning/plan/diff_summary.h"

namespace ckplan {

struct DiffSide {
  std::string title;  // The name of the file, or the algorithm as it was typed.
  PlanDigest plan;
  ModulesOfRows modules = {};  // Empty if the model does not say its modules.
};

struct ComparedPlans {
  DiffSide older;
  DiffSide newer;
  PlanDiff diff;  // The result of DiffPlans for the two plans.
  DiffSummary summary;
};

std::string DiffText(const ComparedPlans& plans, bool shows_all, const Terminal& terminal);
std::string DiffMarkdown(const ComparedPlans& plans, bool shows_all);

}  // namespace ckplan
