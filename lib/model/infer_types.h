// ONNX's type and shape inference, for one operation at a time.
//
// Each operator's rule is called directly, in the order of the graph, with every value folded so
// far at hand. This needs one pass; alternating inference of the whole graph with folding needs up
// to ten.
#pragma once

#include <string>
#include <vector>

#include "lib/model/model_impl.h"
#include "onnx/onnx_pb.h"

namespace ckplan {

struct InferredTypes {
  std::vector<onnx::TypeProto> outputs;  // One for each output; unset where the type stays unknown.
  std::string fault;                     // ONNX's error message; empty if there is none.
};

InferredTypes InferTypes(const Model::Impl& model, const ModelOperation& operation);

// What an operation has although its operator allows it not: "3 inputs; it may have at most 2",
// "floats as input 1, which takes none". Empty if all is well, or the operator is not known. ONNX's
// rules of shapes pass over operands that an operator does not have and over their types, and make
// as many sizes as a Split asks for, whatever it has. The outputs need not be known yet.
std::string OperandFault(const Model::Impl& model, const ModelOperation& operation);

onnx::TypeProto TensorOfType(int32_t elem_type, const Dims& dims);

// Whether the type is a tensor whose dimensions are all known.
bool IsFullTensor(const onnx::TypeProto& type);

}  // namespace ckplan
