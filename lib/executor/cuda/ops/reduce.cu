// Sums and means of floats along axes.
#include <algorithm>
#include <memory>

#include "lib/executor/cuda/index.h"
#include "lib/executor/cuda/kernel.h"
#include "lib/executor/cuda/reduce.h"
#include "lib/executor/cuda/registry.h"
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

// ReduceSum, and ReduceMean, which divides by the number of elements of each result.
class ReduceOp final : public PreparedOp {
 public:
  ReduceOp(const OpSpec& spec, Device& device, const ckplan::ReduceShape& shape, float divisor)
      : device_(device),
        reduction_(shape.layout),
        result_(Layout{shape.layout.dims, {shape.layout.strides[1]}}),
        count_(shape.elements),
        divisor_(divisor),
        x_type_(spec.input(0).type),
        y_type_(spec.output(0).type) {}
  OpWorkspace workspace() const override { return {reduction_.workspace<float>(), 0}; }

  void Forward(const ForwardCall& call) override {
    const FloatsIn x(call.inputs[0], x_type_);
    const FloatsOut y(call.outputs[0], y_type_);
    const float divisor = divisor_;
    reduction_.Run(
        device_, 0.0F, [=] CKPLAN_KERNEL(int64_t, int64_t at) { return x[at]; }, SumOf(),
        [=] CKPLAN_KERNEL(int64_t i, float sum) { y.Set(i, sum / divisor); }, call.workspace);
  }

  void BackwardInput(const BackwardCall& call, size_t, void* gradient) override {
    const FloatsIn g(call.output_gradients[0], y_type_);
    const FloatsOut dx(gradient, x_type_);
    const DeviceLayout<1> results = result_;
    const float slope = 1 / divisor_;
    ForEach(device_, count_,
            [=] CKPLAN_KERNEL(int64_t i) { dx.Set(i, g[results.Find(i)[0]] * slope); });
  }

 private:
  Device& device_;
  Reduction reduction_;
  DeviceLayout<1> result_;  // Maps each input element to its result.
  int64_t count_;           // Elements of the input.
  float divisor_;
  ElementType x_type_, y_type_;
};

Result<std::unique_ptr<PreparedOp>> PrepareReduce(const OpSpec& spec, Device& device) {
  CKPLAN_ASSIGN_OR_RETURN(const ckplan::ReduceShape shape, ReadReduceShape(spec));
  if (!FitsDevice(shape.layout)) return Unsupported(spec, "it has more than 8 axes to walk");
  if (!IsFloat(spec.input(0).type)) return Unsupported(spec, "its kernels reduce only floats");
  const auto results = static_cast<double>(std::max<int64_t>(shape.results, 1));
  const double ratio = static_cast<double>(shape.elements) / results;
  const bool is_mean = spec.type == "ReduceMean";
  return Prepared<ReduceOp>(spec, device, shape, is_mean ? static_cast<float>(ratio) : 1.0F);
}

constexpr OpRow kReduceOps[] = {{"ReduceSum", PrepareReduce}, {"ReduceMean", PrepareReduce}};

}  // namespace

std::span<const OpRow> ReduceOps() { return kReduceOps; }

}  // namespace ckplan::cuda
