// From ONNX's description of an operator to that of lib/ops.
#pragma once

#include <optional>
#include <string>

#include "lib/model/model_impl.h"
#include "lib/ops/op_spec.h"

namespace ckplan {

// The type that backends hold tensors of an ONNX type in; nothing for those that they do not hold.
std::optional<ElementType> ElementTypeOf(int32_t onnx_type);

// A floating-point type of other than 32 bits.
bool IsOtherFloat(int32_t onnx_type);
std::string FloatTypeName(int32_t onnx_type);  // "bfloat16"

// Type, opset and attributes; operands are the caller's.
OpSpec SpecOf(const Model::Impl& model, const Operation& operation);

// With operands as the planner counts them (Operand::planned); which gradients are computed is not
// known yet. Of known contents, integers and single numbers are there: shapes, axes, pads, ratios.
OpSpec PlannedSpecOf(const Model::Impl& model, const Operation& operation);

}  // namespace ckplan
