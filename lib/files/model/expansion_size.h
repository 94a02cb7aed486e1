// Computes how large a model becomes when its functions are expanded, before expanding them.
//
// Functions that call each other twice, thirty deep, are two kilobytes of file and 10^9 operations.
// Each function is counted once, so the cost is linear in the size of the file.
#pragma once

#include <string>

#include "lib/base/result.h"
#include "lib/files/model/functions.h"
#include "onnx/onnx_pb.h"

namespace ckplan {

// kUnsupported: calls make more operations, or longer names, than fit into memory, or they are
// nested too deeply, as in a function that calls itself.
Result<Done> CheckExpansion(const onnx::ModelProto& model, const ModelFunctions& functions,
                            const std::string& file);

}  // namespace ckplan
