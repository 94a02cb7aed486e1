#include "lib/problem/ops/gather.h"

#include <fmt/format.h>

#include <string>

#include "lib/problem/ops/layout.h"
#include "lib/problem/ops/op_checks.h"

namespace ckplan {

namespace {

Result<Done> ValidateGatheredTypes(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(RequireIndices(spec, spec.input(1), "its tensor of indices"));
  return RequireType(spec, spec.output(0), "its output", spec.input(0).type);
}

Result<Done> RequireRows(const OpSpec& spec, const GatherShape& shape) {
  if (shape.rows() > 0 || shape.outer * shape.count == 0) return Done{};
  return InvalidOp(spec, fmt::format("it has {} indices into data without rows, {}",
                                     shape.outer * shape.count, TextOf(spec.input(0).dims)));
}

Result<GatherShape> ReadGather(const OpSpec& spec) {
  const Dims& data = spec.input(0).dims;
  const Dims& indices = spec.input(1).dims;
  CKPLAN_ASSIGN_OR_RETURN(const size_t axis, NormalAxis(spec, spec.Int("axis", 0), data.size()));
  const auto at = static_cast<std::ptrdiff_t>(axis);
  Dims expected(data.begin(), data.begin() + at);
  expected.insert(expected.end(), indices.begin(), indices.end());
  expected.insert(expected.end(), data.begin() + at + 1, data.end());
  CKPLAN_RETURN_IF_ERROR(RequireDims(spec, spec.output(0), "its output", expected));
  const AxisView view = ViewAlong(data, axis);
  return GatherShape{view.outer, {view.size}, Product(indices), view.inner, true};
}

// Reads tuples of indices into the axes of the data from `batch` on. `rows` is the operand with the
// gathered rows or the updates.
Result<GatherShape> ReadTuples(const OpSpec& spec, size_t batch, const Operand& rows,
                               std::string_view name) {
  const Dims& data = spec.input(0).dims;
  const Dims& indices = spec.input(1).dims;
  if (batch >= indices.size() || batch >= data.size()) {
    return InvalidOp(spec, fmt::format("{} batch axes are too many for data {} and indices {}",
                                       batch, TextOf(data), TextOf(indices)));
  }
  const auto left = static_cast<int64_t>(data.size() - batch);
  if (indices.back() < 1 || indices.back() > left) {
    return InvalidOp(spec, fmt::format("its tuples have {} indices, and its data has {} axes for "
                                       "them",
                                       indices.back(), left));
  }
  const auto begin = static_cast<std::ptrdiff_t>(batch);
  const auto end = begin + static_cast<std::ptrdiff_t>(indices.back());
  Dims expected(indices.begin(), indices.end() - 1);
  expected.insert(expected.end(), data.begin() + end, data.end());
  CKPLAN_RETURN_IF_ERROR(RequireDims(spec, rows, name, expected));
  return GatherShape{Product(Dims(data.begin(), data.begin() + begin)),
                     Dims(data.begin() + begin, data.begin() + end),
                     Product(Dims(indices.begin() + begin, indices.end() - 1)),
                     Product(Dims(data.begin() + end, data.end())), false};
}

Result<GatherShape> ReadGatherNd(const OpSpec& spec) {
  const Dims& data = spec.input(0).dims;
  const Dims& indices = spec.input(1).dims;
  const int64_t batch = spec.Int("batch_dims", 0);
  if (batch < 0) return InvalidOp(spec, fmt::format("attribute batch_dims is {}", batch));
  const auto outer = static_cast<size_t>(batch);
  CKPLAN_ASSIGN_OR_RETURN(GatherShape shape, ReadTuples(spec, outer, spec.output(0), "its output"));
  for (size_t axis = 0; axis < outer; ++axis) {
    if (data[axis] == indices[axis]) continue;
    return InvalidOp(spec, fmt::format("its data {} and indices {} differ in batch axis {}",
                                       TextOf(data), TextOf(indices), axis));
  }
  return shape;
}

}  // namespace

Result<GatherShape> ReadGatherShape(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(RequireOperands(spec, 2));
  CKPLAN_RETURN_IF_ERROR(ValidateGatheredTypes(spec));
  CKPLAN_ASSIGN_OR_RETURN(GatherShape shape,
                          spec.type == "Gather" ? ReadGather(spec) : ReadGatherNd(spec));
  CKPLAN_RETURN_IF_ERROR(RequireRows(spec, shape));
  return shape;
}

Result<GatherShape> ReadScatterNdShape(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(RequireOperands(spec, 3));
  CKPLAN_RETURN_IF_ERROR(ValidateGatheredTypes(spec));
  CKPLAN_RETURN_IF_ERROR(
      RequireType(spec, spec.input(2), "its tensor of updates", spec.input(0).type));
  CKPLAN_RETURN_IF_ERROR(RequireDims(spec, spec.output(0), "its output", spec.input(0).dims));
  CKPLAN_RETURN_IF_ERROR(ReadScattering(spec));
  CKPLAN_ASSIGN_OR_RETURN(GatherShape shape,
                          ReadTuples(spec, 0, spec.input(2), "its tensor of updates"));
  CKPLAN_RETURN_IF_ERROR(RequireRows(spec, shape));
  return shape;
}

Result<Scattering> ReadScattering(const OpSpec& spec) {
  const std::string reduction = spec.String("reduction", "none");
  if (reduction == "none") return Scattering::kSet;
  const bool needs_gradient = spec.input(0).has_gradient || spec.input(2).has_gradient;
  if (needs_gradient && reduction != "add") {
    return UnsupportedOp(
        spec, fmt::format("the gradient of reduction \"{}\" is not supported, as it needs more "
                          "than the indices",
                          reduction));
  }
  CKPLAN_RETURN_IF_ERROR(RequireNumber(spec, spec.input(0), "its data, which is reduced,"));
  if (reduction == "add") return Scattering::kAdd;
  if (reduction == "mul") return Scattering::kMul;
  if (reduction == "max") return Scattering::kMax;
  if (reduction == "min") return Scattering::kMin;
  return InvalidOp(
      spec, fmt::format("attribute reduction is \"{}\" instead of none, add, mul, max or min",
                        reduction));
}

std::span<const FamilyRow> GatherFamily() {
  static constexpr FamilyRow kRows[] = {
      {"Gather", ValidateBy<ReadGatherShape>},
      {"GatherND", ValidateBy<ReadGatherShape>},
      {"ScatterND", ValidateBy<ReadScatterNdShape>,
       "no gradient of reductions other than none and add"},
  };
  return kRows;
}

namespace {

Result<Done> ValidateGather(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(RequireOperands(spec, 2));
  CKPLAN_RETURN_IF_ERROR(ReadElementAxis(spec));
  return RequireDims(spec, spec.output(0), "its output", spec.input(1).dims);
}

Result<Done> ValidateScatter(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(RequireOperands(spec, 3));
  CKPLAN_RETURN_IF_ERROR(ReadElementAxis(spec));
  CKPLAN_RETURN_IF_ERROR(ReadScattering(spec));
  CKPLAN_RETURN_IF_ERROR(
      RequireDims(spec, spec.input(2), "its tensor of updates", spec.input(1).dims));
  CKPLAN_RETURN_IF_ERROR(
      RequireType(spec, spec.input(2), "its tensor of updates", spec.input(0).type));
  return RequireDims(spec, spec.output(0), "its output", spec.input(0).dims);
}

}  // namespace

Result<size_t> ReadElementAxis(const OpSpec& spec) {
  const Dims& data = spec.input(0).dims;
  const Dims& indices = spec.input(1).dims;
  CKPLAN_RETURN_IF_ERROR(RequireIndices(spec, spec.input(1), "its tensor of indices"));
  CKPLAN_RETURN_IF_ERROR(RequireType(spec, spec.output(0), "its output", spec.input(0).type));
  if (data.size() != indices.size()) {
    return InvalidOp(
        spec, fmt::format("its indices have {} axes and its data {}", indices.size(), data.size()));
  }
  CKPLAN_ASSIGN_OR_RETURN(const size_t axis, NormalAxis(spec, spec.Int("axis", 0), data.size()));
  for (size_t i = 0; i < data.size(); ++i) {
    if (i == axis || indices[i] <= data[i]) continue;
    return InvalidOp(spec, fmt::format("its indices {} reach beyond its data {} along axis {}",
                                       TextOf(indices), TextOf(data), i));
  }
  return axis;
}

std::span<const FamilyRow> ElementFamily() {
  static constexpr FamilyRow kRows[] = {
      {"GatherElements", ValidateGather},
      {"ScatterElements", ValidateScatter, "no gradient of reductions other than none and add"},
      {"Scatter", ValidateScatter},
  };
  return kRows;
}

}  // namespace ckplan
