// The figures of models as tables.
#pragma once

#include <string>
#include <vector>

#include "cli/common/terminal.h"
#include "lib/planning/explain/inspection.h"

namespace ckplan {

// Shows the figures, operators and largest tensors of one model, or the figures of several models
// side by side. The verdicts follow.
std::string InspectionText(const std::vector<Inspection>& inspections, const Screen& screen);
std::string InspectionMarkdown(const std::vector<Inspection>& inspections);
// Has one row for each operator of each model.
std::string InspectionCsv(const std::vector<Inspection>& inspections);

}  // namespace ckplan
