// The results of ckexec validate, as text for people and as JSON for programs.
#pragma once

#include <string>

#include "lib/executor/backend/backend.h"
#include "lib/executor/core/validate.h"
#include "lib/planning/plan/plan.h"

namespace ckplan {

struct ValidationContext {
  const Plan& plan;
  std::string backend;  // "cpu: oneDNN 3.2.0, 2 threads"
  const ValidateOptions& options;
};

std::string ValidationText(const ValidationReport& report, const ValidationContext& context);
// See schemas/validation.schema.json.
std::string ValidationJson(const ValidationReport& report, const ValidationContext& context);

}  // namespace ckplan
