// The results of ckexec validate, as text for people and as JSON for programs.
#pragma once

#include <string>

#include "lib/executor/backend/backend.h"
#include "lib/executor/core/validate.h"
#include "lib/planning/plan/plan.h"

namespace ckplan {

// The plan and the backend that the report is about.
struct ValidationContext {
  const Plan& plan;
  std::string backend;  // "cpu: oneDNN 3.2.0, 2 threads"
  const ValidateOptions& options;
};

std::string ValidationText(const ValidationReport& report, const ValidationContext& context);
// schemas/validation.schema.json describes the form.
std::string ValidationJson(const ValidationReport& report, const ValidationContext& context);

}  // namespace ckplan
