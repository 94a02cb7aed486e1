// The output of ckplan modules --for: another runtime's plan beside the unrestricted one.
#pragma once

#include <string>

#include "cli/common/terminal.h"
#include "cli/common/text_table.h"
#include "lib/base/units.h"
#include "lib/planning/plan/plan.h"
#include "lib/planning/runtimes/runtime_plan.h"

namespace ckplan {

// What makes a runtime follow a plan: flags, JSON or Python.

// Lines to paste. Python code calls the model `model`.
std::string RuntimeSettings(const RuntimePlan& plan);

// Whether the plan recomputes nothing.
bool KeepsEverything(const RuntimePlan& plan);

// Returns the added time of a plan with this overhead, as a share of the step without
// recomputation.
double AddedShare(const Plan& plan, Cost overhead);

// Compares the peak and the added time of keeping everything, of the plan, and of `heading`.
TextTable BesidePlanTable(const Plan& plan, std::string heading, Bytes peak, Cost overhead);

std::string RuntimePlanText(const Plan& plan, const RuntimePlan& found, const Terminal& terminal);
// As `ckplan schema runtime` describes it.
std::string RuntimePlanJson(const Plan& plan, const RuntimePlan& found);

}  // namespace ckplan
