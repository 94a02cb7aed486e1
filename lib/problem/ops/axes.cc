#include "lib/problem/ops/axes.h"

#include <fmt/format.h>

namespace ckplan {

Result<size_t> NormalAxis(const OpSpec& spec, int64_t axis, size_t rank) {
  const auto signed_rank = static_cast<int64_t>(rank);
  const int64_t normal = axis < 0 ? axis + signed_rank : axis;
  if (normal < 0 || normal >= signed_rank) {
    return InvalidOp(spec, fmt::format("axis {} is none of the {} axes of its tensor", axis, rank));
  }
  return static_cast<size_t>(normal);
}

Result<std::optional<Dims>> KnownInts(const OpSpec& spec, size_t input,
                                      std::string_view attribute) {
  const Operand& operand = spec.input(input);
  if (!operand.is_present) {
    if (!spec.Has(attribute)) return std::optional<Dims>();
    return std::optional<Dims>(spec.Ints(attribute));
  }
  if (!operand.known.has_value()) {
    return UnsupportedOp(spec,
                         fmt::format("its input \"{}\" is computed during the step", attribute));
  }
  return std::optional<Dims>(operand.known->ints);
}

AxisView ViewAlong(const Dims& dims, size_t axis) {
  AxisView view;
  for (size_t i = 0; i < dims.size(); ++i) {
    (i < axis ? view.outer : i == axis ? view.size : view.inner) *= dims[i];
  }
  return view;
}

}  // namespace ckplan
