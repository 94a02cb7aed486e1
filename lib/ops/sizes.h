// What the families of dense operators (convolutions, products, normalisations) ask of the sizes of
// operands: that they can be counted, are not zero, and are within what the libraries take.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>

#include "lib/base/result.h"
#include "lib/ops/layout.h"
#include "lib/ops/op_spec.h"

namespace ckplan {

// oneDNN, cuBLAS and cuDNN count rows, columns and axes in int32.
inline constexpr int64_t kMaxLibrarySize = 0x7FFFFFFF;

// Nothing where a factor is negative or the product does not fit int64.
std::optional<int64_t> SizeProduct(std::initializer_list<int64_t> factors);
std::optional<int64_t> SizeProduct(const Dims& factors);

// What dense operators have in common: the first `inputs` inputs and `outputs` outputs are present,
// floats, and not empty; and the bytes of each operand fit 64 bits. What else there is of optional
// operands is for the family to judge.
Result<Done> RequireFloatTensors(const OpSpec& spec, size_t inputs, size_t outputs = 1);

// kUnsupported: the size is more than kMaxLibrarySize.
Result<Done> RequireLibrarySize(const OpSpec& spec, std::string_view name, int64_t size);
// Refuses, as above, a size that is the product of these factors.
Result<Done> RequireLibrarySize(const OpSpec& spec, std::string_view name,
                                std::initializer_list<int64_t> factors);

// kInvalidInput: the optional operand is present, and has other dimensions or an integer type.
Result<Done> RequireOptional(const OpSpec& spec, const Operand& operand, std::string_view name,
                             const Dims& expected);

// kUnsupported: a gradient is asked for, and the statistic is not kept or is smaller than
// what forward saves: the product of `factors`, in bytes.
Result<Done> RequireStatistic(const OpSpec& spec, std::initializer_list<int64_t> factors);

// kUnsupported: the gradient of the first input is asked for, which takes the scale (input 1), and
// backward cannot read it.
Result<Done> RequireKeptScale(const OpSpec& spec);

bool WantsGradient(const OpSpec& spec);  // Whether any input does.

}  // namespace ckplan
