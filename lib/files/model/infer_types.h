// ONNX's type and shape inference, for one operation at a time.
//
// Each operator's rule is called directly, in the order of the graph, given all values folded so
// far. This needs one pass; alternating inference of the whole graph with folding needs up to ten.
#pragma once

#include <string>
#include <vector>

#include "lib/files/model/model_impl.h"
#include "onnx/onnx_pb.h"

namespace ckplan {

struct InferredTypes {
  std::vector<onnx::TypeProto> outputs;  // One for each output; unset if the type stays unknown.
  // Why the operation cannot have these inputs and attributes, by AttributeFault
  // (operation_faults.h) or in ONNX's words; empty if it can.
  std::string fault;
};

InferredTypes InferTypes(const Model::Impl& model, const ModelOperation& operation);

onnx::TypeProto TensorOfType(int32_t elem_type, const Dims& dims);

// Returns whether the type is a tensor whose dimensions are all known.
bool IsFullTensor(const onnx::TypeProto& type);

}  // namespace ckplan
