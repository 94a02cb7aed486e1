// What `ckplan fit` prints: one row for keeping everything, and one for each added time.
#pragma once

#include <string>
#include <vector>

#include "cli/common/terminal.h"
#include "lib/planning/planner/fit.h"

namespace ckplan {

// A fit with its question.
struct FitReport {
  Fit fit;
  int64_t multiple_of = 1;
  bool is_verbose = false;  // Says why the model takes no larger size.
};

std::string FitText(const FitReport& report, const Terminal& terminal);
std::string FitMarkdown(const FitReport& report);
std::string FitCsv(const FitReport& report);
std::string FitJson(const FitReport& report);  // schemas/fit.schema.json

// The error if no size fits: the reason, and what would help.
Error NothingFitsError(const FitReport& report);

}  // namespace ckplan
