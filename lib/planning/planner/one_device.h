// The part of a model on one of several devices: a stage of its graph and a shard of its constants.
#pragma once

#include <vector>

#include "lib/base/result.h"
#include "lib/planning/planner/source.h"
#include "lib/problem/graph/tensor_graph.h"

namespace ckplan {

// Checks the request before reading a file. kUsage: a field lacks another that it needs, or
// excludes another.
Result<Done> CheckDeviceRequest(const PlanRequest& request);

// Tells whether the request is for one of several devices.
bool IsPartOfModel(const PlanRequest& request);

// Returns the total size of the buffers among the parameters.
Bytes SumBuffers(const std::vector<Parameter>& parameters);

// Reduces the source of a whole model to the part on the device. `parameters` are all parameters of
// the model. kUsage: the stage doesn't exist. kInvalidInput: sizes overflow.
Result<Done> ReduceToDevice(const std::vector<Parameter>& parameters, Source* source);

}  // namespace ckplan
