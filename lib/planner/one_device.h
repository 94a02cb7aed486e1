// What one of several devices has of a model: a stage of its graph, a part of its constants.
#pragma once

#include <vector>

#include "lib/base/result.h"
#include "lib/graph/parameters.h"
#include "lib/planner/source.h"

namespace ckplan {

// kUsage: parts of the request that belong together and are not all there, or that cannot be asked
// for together, whatever the file.
Result<Done> CheckDeviceRequest(const PlanRequest& request);

// Whether a request is for one of several devices.
bool IsOfOneDevice(const PlanRequest& request);

// Makes of the source of a whole model that of the device. `parameters` are all of the model's.
// kUsage: there is no such stage. kInvalidInput: sizes overflow.
Result<Done> TakeDevice(const std::vector<Parameter>& parameters, Source* source);

}  // namespace ckplan
