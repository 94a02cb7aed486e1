// ONNX's type and shape inference, for one operation at a time.
//
// Each operator's rule is called directly, in the order of the graph, given all values folded so
// far. This needs one pass; alternating inference of the whole graph with folding needs up to ten.
#pragma once

#include <string>
#include <vector>

#include "lib/model/model_impl.h"
#include "onnx/onnx_pb.h"

namespace ckplan {

struct InferredTypes {
  std::vector<onnx::TypeProto> outputs;  // One for each output; unset if the type stays unknown.
  std::string fault;                     // ONNX's error message; empty if there is none.
};

InferredTypes InferTypes(const Model::Impl& model, const ModelOperation& operation);

// Describes operands that the operator does not allow: "3 inputs; it may have at most 2", "floats
// as input 1, which takes none". Empty if there are none, or the operator is unknown. ONNX's shape
// rules ignore surplus operands and wrong types of operands, and give a Split as many sizes as it
// asks for, whatever outputs it has. The outputs need not be known yet.
std::string OperandFault(const Model::Impl& model, const ModelOperation& operation);

onnx::TypeProto TensorOfType(int32_t elem_type, const Dims& dims);

// Returns whether the type is a tensor whose dimensions are all known.
bool IsFullTensor(const onnx::TypeProto& type);

}  // namespace ckplan
