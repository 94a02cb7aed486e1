// From ONNX's description of an operator to the executor's.
#pragma once

#include <optional>
#include <string>

#include "lib/model/model_impl.h"
#include "lib/ops/op_spec.h"

namespace ckplan {

// As what the executor holds tensors of an ONNX type; nothing for types that it does not hold.
std::optional<ElementType> ElementTypeOf(int32_t onnx_type);

// A floating-point type of other than 32 bits.
bool IsOtherFloat(int32_t onnx_type);
std::string FloatTypeName(int32_t onnx_type);  // "bfloat16"
int64_t FloatBytes(int32_t onnx_type);         // Of one element; 4 for types that are no floats.

// Type, opset and attributes; operands are the caller's.
OpSpec SpecOf(const Model::Impl& model, const Operation& operation);

}  // namespace ckplan
