// Writes the figures of models as JSON (schemas/inspect.schema.json).
#pragma once

#include <string>
#include <vector>

#include "lib/planning/explain/inspection.h"

namespace ckplan {

// Returns whether figures of a model depend on the field, so that its readers must know it.
bool DescribesModel(const RequestField& field, const PlanRequest& request);

// Writes a JSON object for one model, and an array of objects for several.
std::string InspectionJson(const std::vector<Inspection>& inspections);

}  // namespace ckplan
