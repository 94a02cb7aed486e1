// Refuses names that are unreasonably long.
#pragma once

#include <string>

#include "lib/base/result.h"
#include "onnx/onnx_pb.h"

namespace ckplan {

// Names are copied, compared and joined, so their lengths count many times. kUnsupported: the name
// of a graph, node, tensor, dimension, operator or domain is longer than 16 KiB.
Result<Done> CheckNames(const onnx::ModelProto& model, const std::string& file);

}  // namespace ckplan
