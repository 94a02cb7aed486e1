// The checks that operators of many families share. Each returns an error that names the
// operand and the numbers, or success. `name` is how messages call the operand:
// "its input", "its output".
#pragma once

#include <string>
#include <string_view>

#include "lib/base/result.h"
#include "lib/ops/layout.h"
#include "lib/ops/op_spec.h"

namespace ckplan {

// "[2,3,4]"; a scalar is "[]".
std::string TextOf(const Dims& dims);

// Whether the types are equal, or both float32 or bfloat16: kernels read and write either.
bool AreAlike(ElementType a, ElementType b);

// kInvalidInput: the first `inputs` inputs and the first `outputs` outputs must be present.
Result<Done> RequireOperands(const OpSpec& spec, size_t inputs, size_t outputs = 1);

// kInvalidInput: the operand has other dimensions.
Result<Done> RequireDims(const OpSpec& spec, const Operand& operand, std::string_view name,
                         const Dims& expected);
Result<Done> RequireElements(const OpSpec& spec, const Operand& operand, std::string_view name,
                             int64_t expected);

// kUnsupported: the operand is not float32 or bfloat16; the operand is boolean.
Result<Done> RequireFloat(const OpSpec& spec, const Operand& operand, std::string_view name);
Result<Done> RequireNumber(const OpSpec& spec, const Operand& operand, std::string_view name);

// kInvalidInput: the operand is of a type that is not like `expected`.
Result<Done> RequireType(const OpSpec& spec, const Operand& operand, std::string_view name,
                         ElementType expected);
// kInvalidInput: the operand is neither int32 nor int64.
Result<Done> RequireIndices(const OpSpec& spec, const Operand& operand, std::string_view name);

// The first input and the first output are present, and have the same dimensions.
Result<Done> RequireSameDims(const OpSpec& spec);
// Same dimensions, as above, and the same type.
Result<Done> RequireSameShape(const OpSpec& spec);

// kInvalidInput: the first `inputs` inputs are not broadcast to exactly the first output.
Result<Done> RequireBroadcast(const OpSpec& spec, size_t inputs);

// For operators that are made of taps (taps.h), which are lists as long as an axis: input and
// output have equally many axes, none of them longer than lists are built for, and types that are
// alike.
Result<Done> RequireTapAxes(const OpSpec& spec);

}  // namespace ckplan
