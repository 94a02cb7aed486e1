// Checks that operators of many families share. Errors name the operand by `name`, such as "its
// input", and give its sizes.
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

// Formats dimensions as "[2,3,4]"; "[]" is a scalar.
std::string TextOf(const Dims& dims);

// Returns true if the types are equal, or if both are floating-point types, since kernels convert
// between float32 and bfloat16.
bool AreAlike(ElementType a, ElementType b);

// kInvalidInput: one of the first `inputs` inputs or `outputs` outputs is absent.
Result<Done> RequireOperands(const OpSpec& spec, size_t inputs, size_t outputs = 1);

// kInvalidInput: the operand does not have the expected dimensions, or the expected number of
// elements.
Result<Done> RequireDims(const OpSpec& spec, const Operand& operand, std::string_view name,
                         const Dims& expected);
Result<Done> RequireElements(const OpSpec& spec, const Operand& operand, std::string_view name,
                             int64_t expected);

// kUnsupported: the operand is neither float32 nor bfloat16 (RequireFloat), or is a boolean
// (RequireNumber).
Result<Done> RequireFloat(const OpSpec& spec, const Operand& operand, std::string_view name);
Result<Done> RequireNumber(const OpSpec& spec, const Operand& operand, std::string_view name);

// kInvalidInput: the operand's type and `expected` are not alike (see AreAlike).
Result<Done> RequireType(const OpSpec& spec, const Operand& operand, std::string_view name,
                         ElementType expected);
// kInvalidInput: the operand is neither int32 nor int64.
Result<Done> RequireIndices(const OpSpec& spec, const Operand& operand, std::string_view name);

// kInvalidInput: the first input or output is absent, or their dimensions differ.
Result<Done> RequireSameDims(const OpSpec& spec);
// Like RequireSameDims; the types must also be alike.
Result<Done> RequireSameShape(const OpSpec& spec);

// kInvalidInput: the first `inputs` inputs, broadcast together, do not have the shape of the first
// output.
Result<Done> RequireBroadcast(const OpSpec& spec, size_t inputs);

// Checks an operator that uses taps (pad_resize.h): input and output must have the same number of
// axes and alike types, and axes must be short enough for lists of taps.
Result<Done> RequireTapAxes(const OpSpec& spec);

// ---- Requirements of dense operators (convolutions, products, normalisations) ----
//
// oneDNN, cuBLAS and cuDNN count rows, columns and axes in int32.
inline constexpr int64_t kMaxLibrarySize = 0x7FFFFFFF;

// The bytes of a float, and of a mean and inverse standard deviation, in statistics.
inline constexpr int64_t kFloatBytes = 4;
inline constexpr int64_t kMomentBytes = 2 * kFloatBytes;

// Returns nothing if a factor is negative or the product does not fit int64.
std::optional<int64_t> SizeProduct(std::initializer_list<int64_t> factors);
std::optional<int64_t> SizeProduct(const Dims& factors);

// The first `inputs` inputs and `outputs` outputs must be present, nonempty floats, and the bytes
// of every operand must fit 64 bits. Each family checks its optional operands itself.
Result<Done> RequireFloatTensors(const OpSpec& spec, size_t inputs, size_t outputs = 1);

// kUnsupported: the size exceeds kMaxLibrarySize.
Result<Done> RequireLibrarySize(const OpSpec& spec, std::string_view name, int64_t size);
// kUnsupported: the product of `factors` exceeds kMaxLibrarySize.
Result<Done> RequireLibrarySize(const OpSpec& spec, std::string_view name,
                                std::initializer_list<int64_t> factors);

// kInvalidInput: the optional operand is present, but has other dimensions or an integer type.
Result<Done> RequireOptional(const OpSpec& spec, const Operand& operand, std::string_view name,
                             const Dims& expected);

// kUnsupported: a gradient is requested, but the statistic is not kept or has fewer bytes than
// forward saves, which is the product of `factors`.
Result<Done> RequireStatistic(const OpSpec& spec, std::initializer_list<int64_t> factors);

// kUnsupported: the gradient of the first input is requested, but backward cannot read the scale
// (input 1), which it needs.
Result<Done> RequireKeptScale(const OpSpec& spec);

bool NeedsGradient(const OpSpec& spec);  // True if any input's gradient is requested.

// Sizes for counting work and saved statistics. The planner counts any operator, including those
// that no backend can run, so these functions check nothing: an absent operand counts as 1, and
// products saturate at kMaxFlops, beyond which TensorGraph::Create refuses the graph.

inline constexpr int64_t kMaxFlops = int64_t{1} << 61;

int64_t SaturatingProduct(std::initializer_list<int64_t> factors);
int64_t SaturatingSum(int64_t a, int64_t b);

int64_t CountElements(const Operand& operand);
int64_t CountBytes(const Operand& operand);
// Both return 1 for an axis that is out of range.
int64_t DimAt(const Operand& operand, size_t axis);
int64_t DimFromEnd(const Operand& operand, size_t from_end);

struct AttentionSizes {
  int64_t batch = 1;
  int64_t heads = 1;        // Query heads.
  int64_t queries = 1;      // The sequence length of Q.
  int64_t keys = 1;         // The sequence length of K, including past keys.
  int64_t query_width = 1;  // Features per head.
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
