#include "lib/problem/ops/judge.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

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
    const size_t lacking = common.size() - dims.size();
    for (size_t axis = 0; axis < dims.size(); ++axis) {
      int64_t& size = common[axis + lacking];
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

}  // namespace ckplan
