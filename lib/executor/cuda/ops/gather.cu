// Gather, GatherND and ScatterND: rows selected by indices.
#include <algorithm>
#include <memory>

#include "lib/executor/backend/backend.h"
#include "lib/executor/cuda/registry.h"
#include "lib/executor/cuda/scatter.h"
#include "lib/executor/cuda/strided_copy.h"
#include "lib/executor/scalar/integers.h"
#include "lib/problem/ops/gather.h"
#include "lib/problem/ops/layout.h"

namespace ckplan::cuda {

namespace {

// Operators that read or write rows selected by indices, for any target of scatter.h.

StridedCopy WholeCopy(int64_t count, ElementType from, ElementType to) {
  return StridedCopy({count}, {from, {1}, 0}, {to, {1}, 0});
}

bool FitsSort(const ScatterShape& shape) { return shape.rows < kMaxRows && shape.count < kMaxRows; }

constexpr std::string_view kTooManyRows = "it has more rows than its kernel can sort";

template <typename Target>
class GatherOp final : public PreparedOp {
 public:
  GatherOp(const OpSpec& spec, Device& device, const ScatterShape& shape, const Target& target)
      : device_(device),
        shape_(shape),
        target_(target),
        x_type_(spec.input(0).type),
        index_type_(spec.input(1).type),
        y_type_(spec.output(0).type),
        has_gradient_(spec.input(0).has_gradient) {}

  OpWorkspace workspace() const override {
    if (!has_gradient_) return {};
    return {0, SortWorkspace(shape_.slab()) + ChunksWorkspace(shape_)};
  }

  void Forward(const ForwardCall& call) override {
    Target target = target_;
    target.indices = IntegersIn(call.inputs[1], index_type_);
    GatherRows(device_, shape_, target, call.inputs[0], x_type_, call.outputs[0], y_type_);
  }

  void BackwardInput(const BackwardCall& call, size_t, void* gradient) override {
    device_.Zero(gradient, shape_.data() * SizeOf(x_type_));
    if (shape_.updates() == 0) return;
    Target target = target_;
    target.indices = IntegersIn(call.inputs[1], index_type_);
    const FloatsIn g(call.output_gradients[0], y_type_);
    const FloatsOut dx(gradient, x_type_);
    void* sums = static_cast<char*>(call.workspace) + SortWorkspace(shape_.slab());
    const int64_t slab = shape_.slab();
    for (int64_t first = 0; first < shape_.count; first += slab) {
      const int64_t count = std::min(slab, shape_.count - first);
      AddRows(device_, shape_,
              SortIndices(device_, target, shape_.rows, first, count, call.workspace), g, dx, sums);
    }
  }

 private:
  Device& device_;
  ScatterShape shape_;
  Target target_;
  ElementType x_type_, index_type_, y_type_;
  bool has_gradient_;
};

// ---- Scatter ------------------------------------------------------------------------------------

struct WrappedSumOf {
  template <typename T>
  CKPLAN_DEVICE T operator()(T a, T b) const {
    return scalar::WrapAdd(a, b);
  }
};

struct WrappedProductOf {
  template <typename T>
  CKPLAN_DEVICE T operator()(T a, T b) const {
    return scalar::WrapMul(a, b);
  }
};

// Keeps the old value unless the update is larger.
struct UpdateIfLarger {
  template <typename T>
  CKPLAN_DEVICE T operator()(T old, T update) const {
    return old < update ? update : old;
  }
};

struct UpdateIfSmaller {
  template <typename T>
  CKPLAN_DEVICE T operator()(T old, T update) const {
    return update < old ? update : old;
  }
};

// The counterpart of FloatsOut for integers.
template <typename T>
struct IntegersOut {
  T* data;
  CKPLAN_DEVICE T operator[](int64_t i) const { return data[i]; }
  CKPLAN_DEVICE void Set(int64_t i, T value) const { data[i] = value; }
};

// If indices repeat, the last update is written; a reduction combines the updates in index order.
template <typename Target>
class ScatterOp final : public PreparedOp {
 public:
  ScatterOp(const OpSpec& spec, Device& device, const ScatterShape& shape, const Target& target,
            Scattering kind)
      : device_(device),
        shape_(shape),
        target_(target),
        kind_(kind),
        x_type_(spec.input(0).type),
        index_type_(spec.input(1).type),
        update_type_(spec.input(2).type),
        y_type_(spec.output(0).type),
        forward_copy_(WholeCopy(shape.data(), x_type_, y_type_)),
        backward_copy_(WholeCopy(shape.data(), y_type_, x_type_)) {}

  OpWorkspace workspace() const override {
    const bool sums = kind_ == Scattering::kAdd && IsFloat(y_type_);
    return {SortWorkspace(shape_.slab()) + (sums ? ChunksWorkspace(shape_) : 0), 0};
  }

  void Forward(const ForwardCall& call) override {
    forward_copy_.Run(device_, call.inputs[0], call.outputs[0]);
    if (shape_.updates() == 0) return;
    Target target = target_;
    target.indices = IntegersIn(call.inputs[1], index_type_);
    const int64_t slab = shape_.slab();
    for (int64_t first = 0; first < shape_.count; first += slab) {
      const int64_t count = std::min(slab, shape_.count - first);
      Scatter(call, SortIndices(device_, target, shape_.rows, first, count, call.workspace));
    }
  }

  void BackwardInput(const BackwardCall& call, size_t position, void* gradient) override {
    Target target = target_;
    target.indices = IntegersIn(call.inputs[1], index_type_);
    const void* g = call.output_gradients[0];
    if (position == 2) {
      return GatherRows(device_, shape_, target, g, y_type_, gradient, update_type_);
    }
    backward_copy_.Run(device_, g, gradient);
    if (kind_ == Scattering::kSet) ClearRows(device_, shape_, target, gradient, x_type_);
  }

 private:
  void Scatter(const ForwardCall& call, const SortedIndices& sorted) {
    if (kind_ == Scattering::kSet) {
      SetRows(device_, shape_, sorted, call.inputs[2], update_type_, call.outputs[0], y_type_);
    } else if (IsFloat(y_type_)) {
      CombineFloats(call, sorted);
    } else if (y_type_ == ElementType::kInt32) {
      CombineIntegers<int32_t>(call, sorted);
    } else {
      CombineIntegers<int64_t>(call, sorted);
    }
  }

  void CombineFloats(const ForwardCall& call, const SortedIndices& sorted) {
    const FloatsIn updates(call.inputs[2], update_type_);
    const FloatsOut y(call.outputs[0], y_type_);
    if (kind_ == Scattering::kAdd) {
      AddRows(device_, shape_, sorted, updates, y,
              static_cast<char*>(call.workspace) + SortWorkspace(shape_.slab()));
    } else if (kind_ == Scattering::kMul) {
      CombineRows<float>(device_, shape_, sorted, updates, y, ProductOf());
    } else if (kind_ == Scattering::kMax) {
      CombineRows<float>(device_, shape_, sorted, updates, y, UpdateIfLarger());
    } else {
      CombineRows<float>(device_, shape_, sorted, updates, y, UpdateIfSmaller());
    }
  }

  template <typename T>
  void CombineIntegers(const ForwardCall& call, const SortedIndices& sorted) {
    const auto* updates = static_cast<const T*>(call.inputs[2]);
    const IntegersOut<T> y{static_cast<T*>(call.outputs[0])};
    if (kind_ == Scattering::kAdd) {
      CombineRows<T>(device_, shape_, sorted, updates, y, WrappedSumOf());
    } else if (kind_ == Scattering::kMul) {
      CombineRows<T>(device_, shape_, sorted, updates, y, WrappedProductOf());
    } else if (kind_ == Scattering::kMax) {
      CombineRows<T>(device_, shape_, sorted, updates, y, UpdateIfLarger());
    } else {
      CombineRows<T>(device_, shape_, sorted, updates, y, UpdateIfSmaller());
    }
  }

  Device& device_;
  ScatterShape shape_;
  Target target_;
  Scattering kind_;
  ElementType x_type_, index_type_, update_type_, y_type_;
  StridedCopy forward_copy_, backward_copy_;
};

template <typename Target>
Result<std::unique_ptr<PreparedOp>> MakeGather(const OpSpec& spec, Device& device,
                                               const ScatterShape& shape, const Target& target) {
  if (spec.input(0).has_gradient && !FitsSort(shape)) return Unsupported(spec, kTooManyRows);
  return Prepared<GatherOp<Target>>(spec, device, shape, target);
}

template <typename Target>
Result<std::unique_ptr<PreparedOp>> MakeScatter(const OpSpec& spec, Device& device,
                                                const ScatterShape& shape, const Target& target) {
  CKPLAN_ASSIGN_OR_RETURN(const Scattering kind, ReadScattering(spec));
  if (!FitsSort(shape)) return Unsupported(spec, kTooManyRows);
  return Prepared<ScatterOp<Target>>(spec, device, shape, target, kind);
}

Result<Done> RequireShortTuples(const OpSpec& spec, const GatherShape& shape) {
  if (shape.indexed.size() <= kMaxAxes) return Done{};
  return Unsupported(spec, "its index tuples are longer than its kernel supports");
}

// If each outer index has its own tuples, all tuples form one list over the rows of all outer
// indices.
Result<std::unique_ptr<PreparedOp>> PrepareGather(const OpSpec& spec, Device& device) {
  CKPLAN_ASSIGN_OR_RETURN(const GatherShape shape, ReadGatherShape(spec));
  CKPLAN_RETURN_IF_ERROR(RequireShortTuples(spec, shape));
  const RowTarget target(shape.indexed, shape.count);
  if (shape.is_shared) {
    const ScatterShape rows{shape.outer, shape.rows(), shape.count, shape.inner};
    return MakeGather(spec, device, rows, target);
  }
  const ScatterShape rows{1, shape.outer * shape.rows(), shape.outer * shape.count, shape.inner};
  return MakeGather(spec, device, rows, target);
}

Result<std::unique_ptr<PreparedOp>> PrepareScatterND(const OpSpec& spec, Device& device) {
  CKPLAN_ASSIGN_OR_RETURN(const GatherShape shape, ReadScatterNdShape(spec));
  CKPLAN_RETURN_IF_ERROR(RequireShortTuples(spec, shape));
  const ScatterShape rows{1, shape.rows(), shape.count, shape.inner};
  return MakeScatter(spec, device, rows, RowTarget(shape.indexed, shape.count));
}

constexpr OpRow kGatherOps[] = {
    {"Gather", PrepareGather},
    {"GatherND", PrepareGather},
    {"ScatterND", PrepareScatterND},
};

}  // namespace

std::span<const OpRow> GatherOps() { return kGatherOps; }

// GatherElements and ScatterElements: each element has an index of its own along one axis.

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
