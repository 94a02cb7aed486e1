// Reductions along axes, of floats and of integers.
#include <algorithm>
#include <limits>
#include <memory>

#include "lib/base/check.h"
#include "lib/executor/cuda/index.h"
#include "lib/executor/cuda/kernel.h"
#include "lib/executor/cuda/reduce.h"
#include "lib/executor/cuda/registry.h"
#include "lib/executor/scalar/integers.h"
#include "lib/problem/ops/layout.h"
#include "lib/problem/ops/reduce.h"

namespace ckplan::cuda {

// Reductions of a tensor along any of its axes.
//
// Neighbouring threads read adjacent elements: elements of one result if the last axis is reduced,
// and elements of neighbouring results if it is kept.
class Reduction {
 public:
  // `layout` is the layout of the tensor and the result; the strides of the result are 0 along the
  // reduced axes.
  explicit Reduction(const Layout& layout) {
    Layout kept{{}, {{}}}, reduced{{}, {{}}};
    for (size_t axis = 0; axis < layout.dims.size(); ++axis) {
      Layout& axes = layout.strides[1][axis] != 0 ? kept : reduced;
      axes.dims.push_back(layout.dims[axis]);
      axes.strides[0].push_back(layout.strides[0][axis]);
    }
    constexpr int64_t kFewColumns = 16;
    const bool is_columns = layout.inner_stride(1) != 0 && layout.inner() >= kFewColumns;
    kept_ = DeviceLayout<1>(Filled(kept));
    reduced_ = DeviceLayout<1>(Filled(reduced));
    shape_ = ReduceShape::Of(kept_.count(), reduced_.count(), is_columns);
    // Rows of a few elements are faster with one thread each than with a team.
    constexpr int64_t kShort = 16, kManyRows = 1024;
    is_by_teams_ = !is_columns && shape_.length > kShort && shape_.results >= kManyRows;
  }

  int64_t results() const { return shape_.results; }
  int64_t length() const { return shape_.length; }
  // Returns the size in bytes of the workspace of Run for this Value.
  template <typename Value>
  int64_t workspace() const {
    return is_by_teams_ ? 0 : shape_.workspace<Value>();
  }

  // Calls finish(result, combination of load(result, element) over the elements of the tensor that
  // belong to the result). `load` and `finish` are kernels; for the other parameters see Reduce.
  template <typename Value, typename Load, typename Combine, typename Finish>
  void Run(Device& device, Value identity, const Load& load, const Combine& combine,
           const Finish& finish, void* workspace) const;

 private:
  static Layout Filled(Layout layout) {
    if (!layout.dims.empty()) return layout;
    return {{1}, {{0}}};
  }

  ReduceShape shape_;
  bool is_by_teams_ = false;
  DeviceLayout<1> kept_, reduced_;
};

namespace detail {

template <typename Load>
struct LoadElement {
  DeviceLayout<1> kept, reduced;
  Load load;
  CKPLAN_KERNEL auto operator()(int64_t result, int64_t i) const {
    return load(result, kept.Find(result)[0] + reduced.Find(i)[0]);
  }
};

template <typename Value, typename Load, typename Combine, typename Finish>
struct ReduceRow {
  int64_t length;
  Value identity;
  LoadElement<Load> element;
  Combine combine;
  Finish finish;
  CKPLAN_KERNEL void operator()(const Team& team, int64_t row) const {
    const int64_t first = element.kept.Find(row)[0];
    const Value value = team.Reduce(
        length, identity,
        [&](int64_t i) { return element.load(row, first + element.reduced.Find(i)[0]); }, combine);
    if (team.IsFirst()) finish(row, value);
  }
};

}  // namespace detail

template <typename Value, typename Load, typename Combine, typename Finish>
void Reduction::Run(Device& device, Value identity, const Load& load, const Combine& combine,
                    const Finish& finish, void* workspace) const {
  const detail::LoadElement<Load> element{kept_, reduced_, load};
  if (is_by_teams_) {
    ForRows(device, shape_.results, shape_.length,
            detail::ReduceRow<Value, Load, Combine, Finish>{shape_.length, identity, element,
                                                            combine, finish});
  } else {
    Reduce(device, shape_, identity, element, combine, finish, workspace);
  }
}

namespace {

// Reductions of integers, which occur in shape computations and are small.
enum class IntegerKind { kNone, kSum, kMean, kProduct, kMax, kMin };

// Sums and products wrap, and a division by 0 gives 0, as in the CPU backend.
struct IntegerSum {
  template <typename T>
  static T Identity() {
    return 0;
  }
  template <typename T>
  CKPLAN_DEVICE T operator()(T a, T b) const {
    return scalar::WrapAdd(a, b);
  }
  template <typename T>
  CKPLAN_DEVICE static T After(T sum, int64_t) {
    return sum;
  }
};
struct IntegerMean : IntegerSum {
  template <typename T>
  CKPLAN_DEVICE static T After(T sum, int64_t n) {
    return n == 0 ? T{0} : static_cast<T>(static_cast<int64_t>(sum) / n);
  }
};
struct IntegerProduct : IntegerSum {
  template <typename T>
  static T Identity() {
    return 1;
  }
  template <typename T>
  CKPLAN_DEVICE T operator()(T a, T b) const {
    return scalar::WrapMul(a, b);
  }
};
struct IntegerMax : IntegerSum {
  template <typename T>
  static T Identity() {
    return std::numeric_limits<T>::lowest();
  }
  template <typename T>
  CKPLAN_DEVICE T operator()(T a, T b) const {
    return a < b ? b : a;
  }
};
struct IntegerMin : IntegerSum {
  template <typename T>
  static T Identity() {
    return std::numeric_limits<T>::max();
  }
  template <typename T>
  CKPLAN_DEVICE T operator()(T a, T b) const {
    return b < a ? b : a;
  }
};

template <typename T, typename F>
class ReduceIntegersOp final : public PreparedOp {
 public:
  ReduceIntegersOp(Device& device, const Layout& layout) : device_(device), reduction_(layout) {}
  OpWorkspace workspace() const override { return {reduction_.workspace<T>(), 0}; }

  void Forward(const ForwardCall& call) override {
    const auto* x = static_cast<const T*>(call.inputs[0]);
    auto* y = static_cast<T*>(call.outputs[0]);
    const int64_t length = reduction_.length();
    reduction_.Run(
        device_, F::template Identity<T>(),
        [=] CKPLAN_KERNEL(int64_t, int64_t at) { return x[at]; }, F(),
        [=] CKPLAN_KERNEL(int64_t i, T value) { y[i] = F::After(value, length); }, call.workspace);
  }
  void BackwardInput(const BackwardCall&, size_t, void*) override {
    CKPLAN_CHECK(false, "no gradient is asked of an operator that has none");
  }

 private:
  Device& device_;
  Reduction reduction_;
};

template <typename T>
Result<std::unique_ptr<PreparedOp>> PrepareOf(const OpSpec& spec, Device& device,
                                              const Layout& layout, IntegerKind kind) {
  switch (kind) {
    case IntegerKind::kSum:
      return Prepared<ReduceIntegersOp<T, IntegerSum>>(device, layout);
    case IntegerKind::kMean:
      return Prepared<ReduceIntegersOp<T, IntegerMean>>(device, layout);
    case IntegerKind::kProduct:
      return Prepared<ReduceIntegersOp<T, IntegerProduct>>(device, layout);
    case IntegerKind::kMax:
      return Prepared<ReduceIntegersOp<T, IntegerMax>>(device, layout);
    case IntegerKind::kMin:
      return Prepared<ReduceIntegersOp<T, IntegerMin>>(device, layout);
    case IntegerKind::kNone:
      break;
  }
  return Unsupported(spec, "it has no kernel for this element type");
}

// `layout` is the layout of the input and the result; the strides of the result are 0 along the
// reduced axes. Fails with kUnsupported if the element type is not a supported integer type, or if
// the operator does not support integers (kNone).
Result<std::unique_ptr<PreparedOp>> PrepareIntegers(const OpSpec& spec, Device& device,
                                                    const Layout& layout, IntegerKind kind) {
  switch (spec.input(0).type) {
    case ElementType::kInt32:
      return PrepareOf<int32_t>(spec, device, layout, kind);
    case ElementType::kInt64:
      return PrepareOf<int64_t>(spec, device, layout, kind);
    default:
      return Unsupported(spec, "it has no kernel for this element type");
  }
}

// The parts of a reduction: a function of each element before combining, a function of the combined
// value, and the gradient of one input element. n is the number of elements per result.
struct SumKind {
  static constexpr bool kReadsX = false, kReadsY = false;
  CKPLAN_DEVICE static float Before(float x) { return x; }
  CKPLAN_DEVICE static float After(float sum, float) { return sum; }
  CKPLAN_DEVICE static float Slope(float, float, float) { return 1; }
};
struct MeanKind : SumKind {
  CKPLAN_DEVICE static float After(float sum, float n) { return sum / n; }
  CKPLAN_DEVICE static float Slope(float, float, float n) { return 1 / n; }
};
// Shapes and types of a floating-point ReduceOp.
struct FloatReduction {
  Reduction reduction;
  DeviceLayout<1> result;  // Maps each input element to its result.
  int64_t count = 0;       // Elements of the input.
  float ratio = 1;         // Elements per result.
  ElementType x_type = ElementType::kFloat32, y_type = ElementType::kFloat32;

  FloatReduction(const OpSpec& spec, const ckplan::ReduceShape& shape)
      : reduction(shape.layout),
        result(Layout{shape.layout.dims, {shape.layout.strides[1]}}),
        count(shape.elements),
        ratio(static_cast<float>(static_cast<double>(count) /
                                 static_cast<double>(std::max<int64_t>(shape.results, 1)))),
        x_type(spec.input(0).type),
        y_type(spec.output(0).type) {}
};

template <typename Kind>
class ReduceOp final : public PreparedOp {
 public:
  ReduceOp(const FloatReduction& of, Device& device) : device_(device), of_(of) {}
  OpWorkspace workspace() const override { return {of_.reduction.workspace<float>(), 0}; }

  void Forward(const ForwardCall& call) override {
    const FloatsIn x(call.inputs[0], of_.x_type);
    const FloatsOut y(call.outputs[0], of_.y_type);
    const float ratio = of_.ratio;
    of_.reduction.Run(
        device_, 0.0F, [=] CKPLAN_KERNEL(int64_t, int64_t at) { return Kind::Before(x[at]); },
        SumOf(), [=] CKPLAN_KERNEL(int64_t i, float sum) { y.Set(i, Kind::After(sum, ratio)); },
        call.workspace);
  }

  void BackwardInput(const BackwardCall& call, size_t, void* gradient) override {
    const FloatsIn x(call.inputs[0], of_.x_type);
    const FloatsIn y(call.outputs[0], of_.y_type);
    const FloatsIn g(call.output_gradients[0], of_.y_type);
    const FloatsOut dx(gradient, of_.x_type);
    const DeviceLayout<1> results = of_.result;
    const float ratio = of_.ratio;
    ForEach(device_, of_.count, [=] CKPLAN_KERNEL(int64_t i) {
      const int64_t result = results.Find(i)[0];
      const float slope =
          Kind::Slope(Kind::kReadsX ? x[i] : 0.0F, Kind::kReadsY ? y[result] : 0.0F, ratio);
      dx.Set(i, g[result] * slope);
    });
  }

 private:
  Device& device_;
  FloatReduction of_;
};

template <typename Float, IntegerKind integer_kind>
Result<std::unique_ptr<PreparedOp>> PrepareReduce(const OpSpec& spec, Device& device) {
  CKPLAN_ASSIGN_OR_RETURN(const ckplan::ReduceShape shape, ReadReduceShape(spec));
  if (!FitsDevice(shape.layout)) return Unsupported(spec, "it has more than 8 axes to walk");
  if (IsFloat(spec.input(0).type)) return Prepared<Float>(FloatReduction(spec, shape), device);
  return PrepareIntegers(spec, device, shape.layout, integer_kind);
}

constexpr OpRow kReduceOps[] = {
    {"ReduceSum", PrepareReduce<ReduceOp<SumKind>, IntegerKind::kSum>},
    {"ReduceMean", PrepareReduce<ReduceOp<MeanKind>, IntegerKind::kMean>},
};

}  // namespace

std::span<const OpRow> ReduceOps() { return kReduceOps; }

}  // namespace ckplan::cuda
