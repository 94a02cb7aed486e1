// The output of ckplan modules --for: a plan of another runtime beside the free one.
#pragma once

#include <string>

#include "cli/common/terminal.h"
#include "cli/common/text_table.h"
#include "lib/base/units.h"
#include "lib/planning/plan/plan.h"
#include "lib/planning/runtimes/runtime_plan.h"

namespace ckplan {

// What a runtime is to be given so that it runs a plan: flags, JSON or Python.

// Lines to paste. Python code takes the model as `model`.
std::string RuntimeSettings(const RuntimePlan& plan);

// Whether the plan recomputes nothing.
bool KeepsEverything(const RuntimePlan& plan);

// Returns what a plan with this overhead adds to a step, as a share of the plan's step without
// recomputation.
double AddedShare(const Plan& plan, Cost overhead);

// Compares the peak and the added time of keeping everything, of the plan, and of `heading`.
TextTable BesidePlanTable(const Plan& plan, std::string heading, Bytes peak, Cost overhead);

std::string RuntimePlanText(const Plan& plan, const RuntimePlan& found, const Terminal& terminal);
// As `ckplan schema runtime` describes it.
std::string RuntimePlanJson(const Plan& plan, const RuntimePlan& found);

}  // namespace ckplan
