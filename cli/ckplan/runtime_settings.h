// What a runtime is to be given so that it runs a plan: flags, JSON or Python.
#pragma once

#include <string>

#include "lib/planning/runtimes/runtime_plan.h"

namespace ckplan {

// Lines to paste. Python code takes the model as `model`.
std::string RuntimeSettings(const RuntimePlan& plan);

// Whether the plan recomputes nothing.
bool KeepsEverything(const RuntimePlan& plan);

}  // namespace ckplan
