// Checks that operators of many families share. Each returns success, or an error that names the
// operand and its sizes. `name` is what messages call the operand: "its input", "its output".
#pragma once

#include <string>
#include <string_view>

#include "lib/base/result.h"
#include "lib/problem/ops/layout.h"
#include "lib/problem/ops/op_spec.h"

namespace ckplan {

// Writes dimensions as "[2,3,4]", those of a scalar as "[]".
std::string TextOf(const Dims& dims);

// Returns whether the types are equal or both are floating-point types that kernels can read and
// write (float32, bfloat16).
bool AreAlike(ElementType a, ElementType b);

// kInvalidInput: the first `inputs` inputs and the first `outputs` outputs must be present.
Result<Done> RequireOperands(const OpSpec& spec, size_t inputs, size_t outputs = 1);

// kInvalidInput: the operand does not have the expected dimensions, or the expected number of
// elements.
Result<Done> RequireDims(const OpSpec& spec, const Operand& operand, std::string_view name,
                         const Dims& expected);
Result<Done> RequireElements(const OpSpec& spec, const Operand& operand, std::string_view name,
                             int64_t expected);

// RequireFloat refuses operands that are neither float32 nor bfloat16, and RequireNumber refuses
// booleans, both as kUnsupported.
Result<Done> RequireFloat(const OpSpec& spec, const Operand& operand, std::string_view name);
Result<Done> RequireNumber(const OpSpec& spec, const Operand& operand, std::string_view name);

// kInvalidInput: the operand's type is neither `expected` nor like it (see AreAlike).
Result<Done> RequireType(const OpSpec& spec, const Operand& operand, std::string_view name,
                         ElementType expected);
// kInvalidInput: the operand is neither int32 nor int64.
Result<Done> RequireIndices(const OpSpec& spec, const Operand& operand, std::string_view name);

// kInvalidInput: the first input or output is absent, or their dimensions differ.
Result<Done> RequireSameDims(const OpSpec& spec);
// Requires, in addition to RequireSameDims, that the types are the same.
Result<Done> RequireSameShape(const OpSpec& spec);

// kInvalidInput: broadcasting the first `inputs` inputs does not give exactly the shape of the
// first output.
Result<Done> RequireBroadcast(const OpSpec& spec, size_t inputs);

// Checks an operator that is made of taps (pad_resize.h), whose lists are as long as an axis.
// Requires that input and output have equally many axes, that no axis is longer than such lists may
// be, and that the types are alike.
Result<Done> RequireTapAxes(const OpSpec& spec);

}  // namespace ckplan
