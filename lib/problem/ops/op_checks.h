// Checks that operators of many families share. Each returns success, or an error that names the
// operand and its sizes. `name` is what messages call the operand: "its input", "its output".
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
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

// Requirements on the operands of dense operators (convolutions, products, normalisations): their
// sizes do not overflow, are not zero, and are within the limits of the libraries.

// oneDNN, cuBLAS and cuDNN count rows, columns and axes in int32.
inline constexpr int64_t kMaxLibrarySize = 0x7FFFFFFF;

// Bytes of the numbers that statistics consist of: a float, and a pair of mean and inverse standard
// deviation.
inline constexpr int64_t kFloatBytes = 4;
inline constexpr int64_t kMomentBytes = 2 * kFloatBytes;

// Returns nothing if a factor is negative or the product does not fit int64.
std::optional<int64_t> SizeProduct(std::initializer_list<int64_t> factors);
std::optional<int64_t> SizeProduct(const Dims& factors);

// The requirements that dense operators share: the first `inputs` inputs and `outputs` outputs are
// present, hold floats and are not empty, and the bytes of every operand fit 64 bits. Other
// requirements on optional operands are checked by each family.
Result<Done> RequireFloatTensors(const OpSpec& spec, size_t inputs, size_t outputs = 1);

// kUnsupported: the size exceeds kMaxLibrarySize.
Result<Done> RequireLibrarySize(const OpSpec& spec, std::string_view name, int64_t size);
// kUnsupported: the product of `factors` exceeds kMaxLibrarySize.
Result<Done> RequireLibrarySize(const OpSpec& spec, std::string_view name,
                                std::initializer_list<int64_t> factors);

// kInvalidInput: the optional operand is present, but has other dimensions or an integer type.
Result<Done> RequireOptional(const OpSpec& spec, const Operand& operand, std::string_view name,
                             const Dims& expected);

// kUnsupported: a gradient is requested, but the statistic is not kept or has fewer bytes than the
// product of `factors`, which is the number of bytes that forward saves.
Result<Done> RequireStatistic(const OpSpec& spec, std::initializer_list<int64_t> factors);

// kUnsupported: the gradient of the first input is requested. It is computed from the scale (input
// 1), which backward cannot read.
Result<Done> RequireKeptScale(const OpSpec& spec);

bool NeedsGradient(const OpSpec& spec);  // Whether any input's gradient is requested.

// Sizes from which work and saved statistics are counted, read from the operands of an operator.
//
// The planner counts any operator that it is given, including those that no backend can run. So
// nothing is checked here: an absent operand counts as 1, and products saturate at kManyFlops,
// beyond which TensorGraph::Create refuses the graph.

inline constexpr int64_t kManyFlops = int64_t{1} << 61;

int64_t SaturatingProduct(std::initializer_list<int64_t> factors);
int64_t SaturatingSum(int64_t a, int64_t b);

int64_t CountElements(const Operand& operand);
int64_t CountBytes(const Operand& operand);
// DimAt and DimFromEnd return 1 if there is no such axis.
int64_t DimAt(const Operand& operand, size_t axis);
int64_t DimFromEnd(const Operand& operand, size_t from_end);

struct AttentionSizes {
  int64_t batch = 1;
  int64_t heads = 1;        // Heads of the queries.
  int64_t queries = 1;      // Sequence length of Q.
  int64_t keys = 1;         // Sequence length of K, past keys included.
  int64_t query_width = 1;  // Features of one head.
  int64_t value_width = 1;
};
AttentionSizes CountAttention(const OpSpec& spec);

struct RecurrentSizes {
  int64_t directions = 1;
  int64_t steps = 1;
  int64_t batch = 1;
  int64_t input = 1;
  int64_t hidden = 1;
};
RecurrentSizes CountRecurrent(const OpSpec& spec);

}  // namespace ckplan
