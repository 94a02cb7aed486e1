#include "lib/problem/ops/op_checks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "lib/base/units.h"

namespace ckplan {

std::string TextOf(const Dims& dims) { return fmt::format("[{}]", fmt::join(dims, ",")); }

bool AreAlike(ElementType a, ElementType b) { return a == b || (IsFloat(a) && IsFloat(b)); }

Result<Done> RequireOperands(const OpSpec& spec, size_t inputs, size_t outputs) {
  for (size_t i = 0; i < inputs; ++i) {
    if (!spec.input(i).is_present) return InvalidOp(spec, fmt::format("input {} is missing", i));
  }
  for (size_t i = 0; i < outputs; ++i) {
    if (!spec.output(i).is_present) return InvalidOp(spec, fmt::format("output {} is missing", i));
  }
  return Done{};
}

Result<Done> RequireDims(const OpSpec& spec, const Operand& operand, std::string_view name,
                         const Dims& expected) {
  if (operand.dims == expected) return Done{};
  return InvalidOp(
      spec, fmt::format("{} is {} instead of {}", name, TextOf(operand.dims), TextOf(expected)));
}

Result<Done> RequireElements(const OpSpec& spec, const Operand& operand, std::string_view name,
                             int64_t expected) {
  if (operand.elements() == expected) return Done{};
  return InvalidOp(
      spec, fmt::format("{} has {} elements instead of {}", name, operand.elements(), expected));
}

Result<Done> RequireFloat(const OpSpec& spec, const Operand& operand, std::string_view name) {
  if (IsFloat(operand.type)) return Done{};
  return UnsupportedOp(
      spec, fmt::format("{} is {}; only floats are supported", name, NameOf(operand.type)));
}

Result<Done> RequireNumber(const OpSpec& spec, const Operand& operand, std::string_view name) {
  if (operand.type != ElementType::kBool) return Done{};
  return UnsupportedOp(spec, fmt::format("{} is boolean; only numbers are supported", name));
}

Result<Done> RequireType(const OpSpec& spec, const Operand& operand, std::string_view name,
                         ElementType expected) {
  if (AreAlike(operand.type, expected)) return Done{};
  return InvalidOp(
      spec, fmt::format("{} is {} instead of {}", name, NameOf(operand.type), NameOf(expected)));
}

Result<Done> RequireIndices(const OpSpec& spec, const Operand& operand, std::string_view name) {
  if (operand.type == ElementType::kInt32 || operand.type == ElementType::kInt64) return Done{};
  return InvalidOp(spec,
                   fmt::format("{} is {} instead of int32 or int64", name, NameOf(operand.type)));
}

Result<Done> RequireSameDims(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(RequireOperands(spec, 1));
  return RequireDims(spec, spec.output(0), "its output", spec.input(0).dims);
}

Result<Done> RequireSameShape(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(RequireSameDims(spec));
  return RequireType(spec, spec.output(0), "its output", spec.input(0).type);
}

Result<Done> RequireBroadcast(const OpSpec& spec, size_t inputs) {
  CKPLAN_RETURN_IF_ERROR(RequireOperands(spec, inputs));
  Dims common;
  for (size_t i = 0; i < inputs; ++i) {
    const Dims& dims = spec.input(i).dims;
    if (dims.size() > common.size()) common.insert(common.begin(), dims.size() - common.size(), 1);
    const size_t missing = common.size() - dims.size();
    for (size_t axis = 0; axis < dims.size(); ++axis) {
      int64_t& size = common[axis + missing];
      if (size == 1) size = dims[axis];
      if (size == dims[axis] || dims[axis] == 1) continue;
      return InvalidOp(spec, fmt::format("input {} is {}, which cannot be broadcast to {}", i,
                                         TextOf(dims), TextOf(common)));
    }
  }
  return RequireDims(spec, spec.output(0), "its output", common);
}

Result<Done> RequireTapAxes(const OpSpec& spec) {
  constexpr int64_t kMaxAxis = int64_t{1} << 27;
  CKPLAN_RETURN_IF_ERROR(RequireOperands(spec, 1));
  CKPLAN_RETURN_IF_ERROR(RequireType(spec, spec.output(0), "its output", spec.input(0).type));
  const Dims& x = spec.input(0).dims;
  const Dims& y = spec.output(0).dims;
  if (x.size() != y.size()) {
    return InvalidOp(spec,
                     fmt::format("its output has {} axes and its input {}", y.size(), x.size()));
  }
  for (size_t axis = 0; axis < x.size(); ++axis) {
    if (std::max(x[axis], y[axis]) <= kMaxAxis) continue;
    return UnsupportedOp(spec, fmt::format("axis {} is longer than {} elements", axis, kMaxAxis));
  }
  return Done{};
}

namespace {

constexpr int64_t kMaxElementBytes = 8;

template <typename Factors>
std::optional<int64_t> ProductOf(const Factors& factors) {
  std::optional<int64_t> product = 1;
  bool is_zero = false;
  for (const int64_t factor : factors) {
    if (factor < 0) return std::nullopt;
    is_zero = is_zero || factor == 0;
    if (product.has_value()) product = CheckedMul(*product, factor);
  }
  return is_zero ? 0 : product;
}

Result<Done> RequireCountable(const OpSpec& spec, const Operand& operand, std::string_view name) {
  const std::optional<int64_t> elements = SizeProduct(operand.dims);
  if (!elements.has_value() || !CheckedMul(*elements, kMaxElementBytes).has_value()) {
    return InvalidOp(
        spec, fmt::format("{} is {}, whose bytes do not fit 64 bits", name, TextOf(operand.dims)));
  }
  return Done{};
}

// The first `floats` operands must be nonempty floats, and the bytes of every operand must fit 64
// bits.
Result<Done> RequireFloats(const OpSpec& spec, const std::vector<Operand>& operands, size_t floats,
                           std::string_view kind) {
  for (size_t i = 0; i < operands.size(); ++i) {
    if (!operands[i].is_present) continue;
    const std::string name = fmt::format("{} {}", kind, i);
    CKPLAN_RETURN_IF_ERROR(RequireCountable(spec, operands[i], name));
    if (i >= floats) continue;
    CKPLAN_RETURN_IF_ERROR(RequireFloat(spec, operands[i], name));
    if (operands[i].elements() > 0) continue;
    return UnsupportedOp(spec,
                         fmt::format("{} is {}, which is empty", name, TextOf(operands[i].dims)));
  }
  return Done{};
}

}  // namespace

std::optional<int64_t> SizeProduct(std::initializer_list<int64_t> factors) {
  return ProductOf(factors);
}
std::optional<int64_t> SizeProduct(const Dims& factors) { return ProductOf(factors); }

Result<Done> RequireFloatTensors(const OpSpec& spec, size_t inputs, size_t outputs) {
  CKPLAN_RETURN_IF_ERROR(RequireOperands(spec, inputs, outputs));
  CKPLAN_RETURN_IF_ERROR(RequireFloats(spec, spec.inputs, inputs, "input"));
  return RequireFloats(spec, spec.outputs, outputs, "output");
}

Result<Done> RequireLibrarySize(const OpSpec& spec, std::string_view name, int64_t size) {
  if (size <= kMaxLibrarySize) return Done{};
  return UnsupportedOp(
      spec, fmt::format("{} is {}; libraries support at most {}", name, size, kMaxLibrarySize));
}

Result<Done> RequireLibrarySize(const OpSpec& spec, std::string_view name,
                                std::initializer_list<int64_t> factors) {
  const std::optional<int64_t> product = SizeProduct(factors);
  if (product.has_value()) return RequireLibrarySize(spec, name, *product);
  return UnsupportedOp(spec, fmt::format("{} does not fit 64 bits", name));
}

Result<Done> RequireOptional(const OpSpec& spec, const Operand& operand, std::string_view name,
                             const Dims& expected) {
  if (!operand.is_present) return Done{};
  CKPLAN_RETURN_IF_ERROR(RequireDims(spec, operand, name, expected));
  return RequireType(spec, operand, name, ElementType::kFloat32);
}

Result<Done> RequireStatistic(const OpSpec& spec, std::initializer_list<int64_t> factors) {
  const std::optional<int64_t> bytes = SizeProduct(factors);
  if (!bytes.has_value()) {
    return UnsupportedOp(spec, "the bytes that it saves for backward do not fit 64 bits");
  }
  if (spec.statistic_bytes == 0 && NeedsGradient(spec)) {
    return UnsupportedOp(spec, "the values that it saves for backward are not kept");
  }
  if (spec.statistic_bytes != 0 && spec.statistic_bytes < *bytes) {
    return UnsupportedOp(spec, fmt::format("it saves {} bytes for backward, but has room for {}",
                                           *bytes, spec.statistic_bytes));
  }
  return Done{};
}

Result<Done> RequireKeptScale(const OpSpec& spec) {
  if (!spec.input(0).has_gradient || spec.input(1).is_read_by_backward) return Done{};
  return UnsupportedOp(spec, "its scale is computed during the step but not kept for backward");
}

bool NeedsGradient(const OpSpec& spec) {
  return std::any_of(spec.inputs.begin(), spec.inputs.end(),
                     [](const Operand& input) { return input.has_gradient; });
}

int64_t SaturatingProduct(std::initializer_list<int64_t> factors) {
  int64_t product = 1;
  for (const int64_t factor : factors) {
    product = std::min(CheckedMul(product, factor).value_or(kMaxFlops), kMaxFlops);
  }
  return product;
}

int64_t SaturatingSum(int64_t a, int64_t b) {
  return std::min(CheckedAdd(a, b).value_or(kMaxFlops), kMaxFlops);
}

int64_t CountElements(const Operand& operand) {
  int64_t count = 1;
  for (const int64_t dim : operand.dims) {
    const auto product = CheckedMul(count, dim);
    if (dim < 0 || !product) return kMaxFlops;
    count = *product;
  }
  return count;
}

int64_t CountBytes(const Operand& operand) {
  if (operand.planned) return operand.planned->bytes;
  return SaturatingProduct({CountElements(operand), SizeOf(operand.type)});
}

int64_t DimAt(const Operand& operand, size_t axis) {
  return axis < operand.dims.size() ? operand.dims[axis] : 1;
}

int64_t DimFromEnd(const Operand& operand, size_t from_end) {
  const size_t rank = operand.dims.size();
  return rank < from_end ? 1 : operand.dims[rank - from_end];
}

AttentionSizes CountAttention(const OpSpec& spec) {
  AttentionSizes sizes;
  if (spec.type == "FusedAttention") {
    sizes.batch = spec.Int("batch", 1);
    sizes.heads = spec.Int("heads", 1);
    sizes.queries = spec.Int("queries", 1);
    sizes.keys = spec.Int("keys", 1);
    sizes.query_width = spec.Int("size", 1);
    sizes.value_width = spec.Int("value_size", 1);
    return sizes;
  }
  const Operand& q = spec.input(0);
  const Operand& k = spec.input(1);
  const Operand& v = spec.input(2);
  if (!q.is_present || !k.is_present || !v.is_present) return sizes;
  sizes.batch = DimAt(q, 0);
  if (q.dims.size() == 4) {
    sizes.heads = DimAt(q, 1);
    sizes.queries = DimAt(q, 2);
    sizes.query_width = DimAt(q, 3);
  } else {  // [batch, sequence, heads * width]
    sizes.heads = std::max<int64_t>(1, spec.Int("q_num_heads", 1));
    sizes.queries = DimAt(q, 1);
    sizes.query_width = DimAt(q, 2) / sizes.heads;
  }
  if (k.dims.size() == 4) {
    sizes.keys = DimAt(k, 2);
    sizes.value_width = DimAt(v, 3);
  } else {
    sizes.keys = DimAt(k, 1);
    sizes.value_width = DimAt(v, 2) / std::max<int64_t>(1, spec.Int("kv_num_heads", 1));
  }
  if (spec.input(4).is_present) sizes.keys += DimAt(spec.input(4), 2);
  return sizes;
}

RecurrentSizes CountRecurrent(const OpSpec& spec) {
  RecurrentSizes sizes;
  const Operand& x = spec.input(0);
  const Operand& recurrence = spec.input(2);  // [directions, gates * hidden, hidden]
  if (!x.is_present || !recurrence.is_present) return sizes;
  const bool is_batch_first = spec.Int("layout", 0) == 1;
  sizes.steps = DimAt(x, is_batch_first ? 1 : 0);
  sizes.batch = DimAt(x, is_batch_first ? 0 : 1);
  sizes.input = DimAt(x, 2);
  sizes.directions = DimAt(recurrence, 0);
  sizes.hidden = DimAt(recurrence, 2);
  return sizes;
}

}  // namespace ckplan
