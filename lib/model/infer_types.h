// ONNX's type and shape inference, for one operation at a time.
//
// Calling each operator's rule directly, in the order of the graph, with every value folded so far
// at hand, needs one pass; inference of the whole graph and folding in turns needs up to ten.
#pragma once

#include <string>
#include <vector>

#include "lib/model/model_impl.h"
#include "onnx/onnx_pb.h"

namespace ckplan {

struct InferredTypes {
  std::vector<onnx::TypeProto> outputs;  // One for each output; what stays unknown is not set.
  std::string fault;                     // What ONNX objected to; empty if nothing.
};

InferredTypes InferTypes(const Model::Impl& model, const Operation& operation);

// Whether the type is a tensor whose dimensions are all known.
bool IsFullTensor(const onnx::TypeProto& type);

}  // namespace ckplan
