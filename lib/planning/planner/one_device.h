// The part of a model that one of several devices has: a stage of its graph, and a share of its
// constants.
#pragma once

#include <vector>

#include "lib/base/result.h"
#include "lib/planning/planner/source.h"
#include "lib/problem/graph/tensor_graph.h"

namespace ckplan {

// Checks the request without reading a file. kUsage: fields that belong together are not all given,
// or fields that exclude each other are.
Result<Done> CheckDeviceRequest(const PlanRequest& request);

// Returns whether a request is for one of several devices.
bool IsOfOneDevice(const PlanRequest& request);

// Returns the bytes of those that are buffers.
Bytes BuffersAmong(const std::vector<Parameter>& parameters);

// Changes the source of a whole model into that of the device. `parameters` are all parameters of
// the model. kUsage: there is no such stage. kInvalidInput: sizes overflow.
Result<Done> TakeDevice(const std::vector<Parameter>& parameters, Source* source);

}  // namespace ckplan
