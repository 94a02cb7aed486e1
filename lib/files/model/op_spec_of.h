// Translates ONNX's description of an operator into that of lib/problem/ops.
#pragma once

#include <optional>
#include <string>

#include "lib/files/model/model_impl.h"
#include "lib/problem/ops/op_spec.h"

namespace ckplan {

// Returns the type in which backends store tensors of an ONNX type; nullopt if they can't.
std::optional<ElementType> ElementTypeOf(int32_t onnx_type);

// True for floating-point types other than 32 bits.
bool IsOtherFloat(int32_t onnx_type);
std::string FloatTypeName(int32_t onnx_type);  // For example "bfloat16".

// Sets type, opset and attributes. The caller adds the operands.
OpSpec SpecOf(const Model::Impl& model, const ModelOperation& operation);

// Also sets the operands as the planner counts them (Operand::planned), but not which gradients are
// computed. Known contents are included if they are integers or single numbers, such as shapes,
// axes, pads and ratios.
OpSpec PlannedSpecOf(const Model::Impl& model, const ModelOperation& operation);

}  // namespace ckplan
