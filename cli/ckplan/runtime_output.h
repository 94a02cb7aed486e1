// The output of ckplan modules --for: a plan of another runtime beside the free one.
#pragma once

#include <string>

#include "cli/common/terminal.h"
#include "lib/plan/plan.h"
#include "lib/runtimes/runtime_plan.h"

namespace ckplan {

std::string RuntimePlanText(const Plan& plan, const RuntimePlan& found, const Terminal& terminal);
// As `ckplan schema runtime` describes it.
std::string RuntimePlanJson(const Plan& plan, const RuntimePlan& found);

}  // namespace ckplan
