// Turns the file's nested graph into the flat one of Model::Impl: functions and constant branches
// are expanded, types inferred and small values folded, all in one pass in the order of the file.
#pragma once

#include <string>

#include "lib/base/result.h"
#include "lib/files/model/bind_dims.h"
#include "lib/files/model/follow_batch.h"
#include "lib/files/model/model_impl.h"

namespace ckplan {

// Fills values, operations, graph_inputs and graph_outputs of `model` from its proto. An error
// lists all faults of one kind: kInvalidInput for a graph that contradicts itself and for shapes
// that stay unknown, kUnsupported for control flow and for operators on sequences. If there is a
// `follower`, constants follow the batch that it is for; kUnsupported: they cannot.
Result<Done> ExpandGraph(Model::Impl& model, const BoundDims& bound, const std::string& file,
                         BatchFollower* follower = nullptr);

}  // namespace ckplan
