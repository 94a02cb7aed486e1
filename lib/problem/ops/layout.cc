#include "lib/problem/ops/layout.h"

#include <fmt/format.h>

#include "lib/base/check.h"

namespace ckplan {

int64_t Product(const Dims& dims) {
  int64_t product = 1;
  for (const int64_t dim : dims) product *= dim;
  return product;
}

Dims RowMajorStrides(const Dims& dims) {
  Dims strides(dims.size(), 1);
  for (size_t axis = dims.size(); axis-- > 1;) strides[axis - 1] = strides[axis] * dims[axis];
  return strides;
}

Dims BroadcastStrides(const Dims& dims, const Dims& to) {
  CKPLAN_CHECK(dims.size() <= to.size(), "a tensor is broadcast to no lower rank");
  const Dims own = RowMajorStrides(dims);
  Dims strides(to.size(), 0);
  const size_t lacking = to.size() - dims.size();
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    if (dims[axis] != 1) strides[axis + lacking] = own[axis];
  }
  return strides;
}

Layout Collapse(const Dims& dims, const std::vector<Dims>& strides) {
  Layout layout;
  layout.strides.resize(strides.size());
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    if (dims[axis] == 1) continue;
    // Whether every operand can merge this axis with the one before.
    bool continues = !layout.dims.empty();
    for (size_t k = 0; continues && k < strides.size(); ++k) {
      continues = layout.strides[k].back() == strides[k][axis] * dims[axis];
    }
    if (continues) {
      layout.dims.back() *= dims[axis];
    } else {
      layout.dims.push_back(dims[axis]);
    }
    for (size_t k = 0; k < strides.size(); ++k) {
      if (!continues) layout.strides[k].push_back(0);
      layout.strides[k].back() = strides[k][axis];
    }
  }
  if (layout.dims.empty()) {
    layout.dims.push_back(1);
    for (Dims& own : layout.strides) own.push_back(0);
  }
  return layout;
}

Layout BroadcastLayout(const Dims& dims, const std::vector<Dims>& operands) {
  std::vector<Dims> strides;
  for (const Dims& operand : operands) strides.push_back(BroadcastStrides(operand, dims));
  strides.push_back(RowMajorStrides(dims));
  return Collapse(dims, strides);
}

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
