// GatherElements and ScatterElements: each element has an index of its own along one axis.
#include <algorithm>

#include "lib/executor/cuda/families.h"
#include "lib/executor/cuda/ops/gather_ops.h"
#include "lib/problem/ops/gather.h"
#include "lib/problem/ops/layout.h"

namespace ckplan::cuda {

namespace {

// Every element of the data is treated as a row with one column. Indices of the same element lie on
// one line along the axis, so whole lines should be sorted together.
ScatterShape ShapeOf(const OpSpec& spec, const ElementTarget& target) {
  const int64_t unit = std::max<int64_t>(1, target.block);
  return {1, spec.input(0).elements(), spec.input(1).elements(), 1, unit};
}

Result<ElementTarget> TargetOf(const OpSpec& spec) {
  const Dims& data = spec.input(0).dims;
  const Dims& indices = spec.input(1).dims;
  CKPLAN_ASSIGN_OR_RETURN(const size_t axis, ReadElementAxis(spec));
  Dims strides = RowMajorStrides(data);
  ElementTarget target;
  target.size = data[axis];
  target.step = strides[axis];
  strides[axis] = 0;
  const AxisView view = ViewAlong(indices, axis);
  target.block = view.size * view.inner;
  const Layout others = Collapse(indices, {strides});
  if (!FitsDevice(others)) return Unsupported(spec, "it has more axes than its kernel walks");
  target.others = DeviceLayout<1>(others);
  return target;
}

Result<std::unique_ptr<PreparedOp>> PrepareGatherElements(const OpSpec& spec, Device& device) {
  CKPLAN_ASSIGN_OR_RETURN(const ElementTarget target, TargetOf(spec));
  return MakeGather(spec, device, ShapeOf(spec, target), target);
}

Result<std::unique_ptr<PreparedOp>> PrepareScatterElements(const OpSpec& spec, Device& device) {
  CKPLAN_ASSIGN_OR_RETURN(const ElementTarget target, TargetOf(spec));
  return MakeScatter(spec, device, ShapeOf(spec, target), target);
}

constexpr OpRow kElementOps[] = {
    {"GatherElements", PrepareGatherElements},
    {"ScatterElements", PrepareScatterElements},
    {"Scatter", PrepareScatterElements},
};

}  // namespace

std::span<const OpRow> ElementOps() { return kElementOps; }

}  // namespace ckplan::cuda
