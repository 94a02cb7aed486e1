// AveragePool, MaxPool, their global forms, and Col2Im.
#include <math.h>

#include <algorithm>

#include "lib/executor/cuda/index.h"
#include "lib/executor/cuda/launch.h"
#include "lib/executor/cuda/reduce.h"
#include "lib/executor/cuda/registry.h"
#include "lib/problem/ops/sliding.h"

namespace ckplan::cuda {

namespace {

// Code shared by the pools: the inputs that a window covers, and the windows that cover an input.

// One axis of sliding windows (lib/problem/ops/sliding.h) in kernels: the elements that a window
// covers, and the windows that cover an element.
struct DeviceWindowAxis {
  Divider in, out, stride;
  int64_t kernel = 1, dilation = 1, begin = 0;

  DeviceWindowAxis() = default;
  explicit DeviceWindowAxis(const WindowAxis& axis)
      : in(std::max<int64_t>(1, axis.in)),
        out(std::max<int64_t>(1, axis.out)),
        stride(axis.stride),
        kernel(axis.kernel),
        dilation(axis.dilation),
        begin(axis.begin) {}

  // Returns the input that kernel position k reads in window o, or -1 for padding.
  CKPLAN_DEVICE int64_t InputOf(int64_t o, int64_t k) const {
    const int64_t at = o * stride.divisor() - begin + k * dilation;
    return at < in.divisor() ? Max(at, -1) : -1;
  }
  // Returns the window whose kernel position k is on this input, or -1.
  CKPLAN_DEVICE int64_t OutputOf(int64_t at, int64_t k) const {
    int64_t reach = at + begin - k * dilation;
    if (reach < 0) return -1;
    const int64_t o = stride.Split(reach);
    return reach == 0 && o < out.divisor() ? o : -1;
  }
};

// An element's position in a tensor of planes. Interleaved planes are numbered from `first`.
struct PoolPlace {
  int64_t first, lane, z, y, x;

  CKPLAN_DEVICE int64_t plane() const { return first + lane; }
};

// A plane has fewer than 2^31 elements, but positions in padding or dilation may be beyond.
class PoolIndex {
 public:
  explicit PoolIndex(const PoolShape& shape)
      : lanes_(std::max<int64_t>(1, shape.interleaved)), in_(shape.in()), out_(shape.out()) {
    for (int i = 0; i < 3; ++i) axes_[i] = DeviceWindowAxis(shape.axes[static_cast<size_t>(i)]);
  }

  CKPLAN_DEVICE int64_t in(int axis) const { return axes_[axis].in.divisor(); }
  CKPLAN_DEVICE int64_t out(int axis) const { return axes_[axis].out.divisor(); }
  CKPLAN_DEVICE PoolPlace FindInput(int64_t i) const {
    int64_t x = lanes_.Split(i);
    int64_t y = axes_[2].in.Split(x);
    int64_t z = axes_[1].in.Split(y);
    const int64_t first = axes_[0].in.Split(z) * lanes_.divisor();
    return {first, i, z, y, x};
  }
  CKPLAN_DEVICE PoolPlace FindOutput(int64_t i) const {
    int64_t x = lanes_.Split(i);
    int64_t y = axes_[2].out.Split(x);
    int64_t z = axes_[1].out.Split(y);
    const int64_t first = axes_[0].out.Split(z) * lanes_.divisor();
    return {first, i, z, y, x};
  }

  // Returns the input's memory offset of element `at` of a place's plane.
  CKPLAN_DEVICE int64_t InputAt(const PoolPlace& place, int64_t at) const {
    return place.first * in_ + at * lanes_.divisor() + place.lane;
  }
  // Returns the output's memory offset of this position in a place's plane.
  CKPLAN_DEVICE int64_t OutputAt(const PoolPlace& place, int64_t z, int64_t y, int64_t x) const {
    return place.first * out_ + ((z * out(1) + y) * out(2) + x) * lanes_.divisor() + place.lane;
  }
  // Returns an input place's index in its plane.
  CKPLAN_DEVICE int64_t InPlane(const PoolPlace& place) const {
    return (place.z * in(1) + place.y) * in(2) + place.x;
  }

  // Calls visit(index in the plane) for each input in this output's window, in order.
  template <typename Visit>
  CKPLAN_DEVICE void ForInputs(const PoolPlace& output, const Visit& visit) const {
    for (int64_t i = 0; i < axes_[0].kernel; ++i) {
      const int64_t z = axes_[0].InputOf(output.z, i);
      if (z < 0) continue;
      for (int64_t j = 0; j < axes_[1].kernel; ++j) {
        const int64_t y = axes_[1].InputOf(output.y, j);
        if (y < 0) continue;
        const int64_t row = (z * in(1) + y) * in(2);
        for (int64_t k = 0; k < axes_[2].kernel; ++k) {
          const int64_t x = axes_[2].InputOf(output.x, k);
          if (x >= 0) visit(row + x);
        }
      }
    }
  }

  // Calls visit(z, y, x) for each output whose window covers this input, in an unspecified but
  // fixed order.
  template <typename Visit>
  CKPLAN_DEVICE void ForOutputs(const PoolPlace& input, const Visit& visit) const {
    for (int64_t i = 0; i < axes_[0].kernel; ++i) {
      const int64_t z = axes_[0].OutputOf(input.z, i);
      if (z < 0) continue;
      for (int64_t j = 0; j < axes_[1].kernel; ++j) {
        const int64_t y = axes_[1].OutputOf(input.y, j);
        if (y < 0) continue;
        for (int64_t k = 0; k < axes_[2].kernel; ++k) {
          const int64_t x = axes_[2].OutputOf(input.x, k);
          if (x >= 0) visit(z, y, x);
        }
      }
    }
  }

 private:
  Divider lanes_;  // Interleaved planes.
  int64_t in_, out_;
  DeviceWindowAxis axes_[3];
};

// The number of elements in each mean: the product of one number per axis.
struct Counts {
  const float *z, *y, *x;
  CKPLAN_DEVICE float At(int64_t oz, int64_t oy, int64_t ox) const { return z[oz] * y[oy] * x[ox]; }
};

class AveragePoolOp final : public PreparedOp {
 public:
  // `counts` has the factors of Counts for all output positions of each axis, axis after axis.
  AveragePoolOp(const OpSpec& spec, Device& device, const PoolShape& shape,
                DeviceTable<float> counts)
      : device_(device),
        shape_(shape),
        index_(shape),
        table_(std::move(counts)),
        x_type_(spec.input(0).type),
        y_type_(spec.output(0).type) {}

  void Forward(const ForwardCall& call) override {
    const FloatsIn x(call.inputs[0], x_type_);
    const FloatsOut y(call.outputs[0], y_type_);
    const Counts counts = TableOfCounts();
    const PoolIndex index = index_;
    if (y.is_null()) return;
    ForEach(device_, shape_.planes * shape_.out(), [=] CKPLAN_KERNEL(int64_t o) {
      const PoolPlace place = index.FindOutput(o);
      float sum = 0;
      index.ForInputs(place, [&](int64_t i) { sum += x[index.InputAt(place, i)]; });
      y.Set(o, sum / counts.At(place.z, place.y, place.x));
    });
  }

  void BackwardInput(const BackwardCall& call, size_t, void* gradient) override {
    const FloatsIn dy(call.output_gradients[0], y_type_);
    const FloatsOut dx(gradient, x_type_);
    const Counts counts = TableOfCounts();
    const PoolIndex index = index_;
    ForEach(device_, shape_.planes * shape_.in(), [=] CKPLAN_KERNEL(int64_t i) {
      const PoolPlace place = index.FindInput(i);
      float sum = 0;
      index.ForOutputs(place, [&](int64_t z, int64_t y, int64_t x) {
        sum += dy[index.OutputAt(place, z, y, x)] / counts.At(z, y, x);
      });
      dx.Set(i, sum);
    });
  }

 private:
  Counts TableOfCounts() const {
    const float* z = table_.data();
    const float* y = z + shape_.axes[0].out;
    return {z, y, y + shape_.axes[1].out};
  }

  Device& device_;
  PoolShape shape_;
  PoolIndex index_;
  DeviceTable<float> table_;
  ElementType x_type_, y_type_;
};

// A pool whose window is the whole plane.
class PlaneMeanOp final : public PreparedOp {
 public:
  PlaneMeanOp(const OpSpec& spec, Device& device, const PoolShape& shape, int64_t count)
      : device_(device),
        planes_(shape.planes),
        size_(shape.in()),
        lanes_(std::max<int64_t>(1, shape.interleaved)),
        sums_(ReduceShape::Of(planes_, size_, /*is_columns=*/true)),
        count_(static_cast<float>(count)),
        x_type_(spec.input(0).type),
        y_type_(spec.output(0).type) {}

  void Forward(const ForwardCall& call) override {
    const FloatsIn x(call.inputs[0], x_type_);
    const FloatsOut y(call.outputs[0], y_type_);
    const int64_t size = size_;
    const float count = count_;
    if (y.is_null()) return;
    if (lanes_.divisor() > 1) return SumColumns(x, y, call.workspace);
    ForRows(device_, planes_, size, [=] CKPLAN_KERNEL(const Team& team, int64_t plane) {
      const float sum = team.Sum(size, [&](int64_t i) { return x[plane * size + i]; });
      if (team.IsFirst()) y.Set(plane, sum / count);
    });
  }

  void BackwardInput(const BackwardCall& call, size_t, void* gradient) override {
    const FloatsIn dy(call.output_gradients[0], y_type_);
    const FloatsOut dx(gradient, x_type_);
    const Divider by_plane(std::max<int64_t>(1, size_)), lanes = lanes_;
    const float share = 1 / count_;
    ForEach(device_, planes_ * size_, [=] CKPLAN_KERNEL(int64_t i) {
      int64_t lane = i;
      const int64_t first = by_plane.Quotient(lanes.Split(lane)) * lanes.divisor();
      dx.Set(i, dy[first + lane] * share);
    });
  }

  OpWorkspace workspace() const override {
    return {lanes_.divisor() > 1 ? sums_.workspace<float>() : 0, 0};
  }

  // Sums interleaved planes. Public, because nvcc does not allow kernels in private methods.
  void SumColumns(FloatsIn x, FloatsOut y, void* workspace) {
    const Divider lanes = lanes_;
    const int64_t size = size_;
    const float count = count_;
    Reduce(
        device_, sums_, 0.0F,
        [=] CKPLAN_KERNEL(int64_t plane, int64_t i) {
          int64_t lane = plane;
          const int64_t sample = lanes.Split(lane);
          return x[(sample * size + i) * lanes.divisor() + lane];
        },
        SumOf(), [=] CKPLAN_KERNEL(int64_t plane, float sum) { y.Set(plane, sum / count); },
        workspace);
  }

 private:
  Device& device_;
  int64_t planes_, size_;
  Divider lanes_;     // Interleaved planes.
  ReduceShape sums_;  // Sums interleaved planes.
  float count_;       // Elements per mean, including padding.
  ElementType x_type_, y_type_;
};

}  // namespace

Result<std::unique_ptr<PreparedOp>> PrepareAveragePool(const OpSpec& spec, Device& device) {
  CKPLAN_ASSIGN_OR_RETURN(const PoolShape shape, ReadPoolShape(spec));
  if (shape.is_one_window()) {
    int64_t count = 1;
    for (const WindowAxis& axis : shape.axes) count *= axis.count(0, shape.counts_padding);
    return Prepared<PlaneMeanOp>(spec, device, shape, count);
  }
  std::vector<float> counts;
  for (const WindowAxis& axis : shape.axes) {
    for (int64_t o = 0; o < axis.out; ++o) {
      counts.push_back(static_cast<float>(axis.count(o, shape.counts_padding)));
    }
  }
  CKPLAN_ASSIGN_OR_RETURN(auto table, DeviceTable<float>::Create(device, counts));
  return Prepared<AveragePoolOp>(spec, device, shape, std::move(table));
}

// MaxPool and GlobalMaxPool. The statistic, or the operator's second output, holds each maximum's
// index within its plane. In backward, each input element looks up the outputs that chose it, so
// that no two threads add to one element.

namespace {

struct Found {
  float value;
  int32_t index;  // In its plane; -1 before anything was found.
};

// Returns the larger of two values, or the first if they are equal. NaN is greater than all
// numbers.
struct GreaterOf {
  CKPLAN_DEVICE Found operator()(const Found& a, const Found& b) const {
    if (b.index < 0) return a;
    if (a.index < 0) return b;
    const bool is_a_nan = a.value != a.value;
    const bool is_b_nan = b.value != b.value;
    if (is_a_nan != is_b_nan) return is_a_nan ? a : b;
    if (is_a_nan || a.value == b.value) return a.index < b.index ? a : b;
    return a.value > b.value ? a : b;
  }
};

// Converts an index in a plane to the index stored in the second output, which counts the whole
// tensor, in row-major or column-major order of the plane's axes.
struct Storage {
  bool is_column_major;
  int64_t in[3];

  explicit Storage(const PoolShape& shape)
      : is_column_major(shape.is_column_major),
        in{shape.axes[0].in, shape.axes[1].in, shape.axes[2].in} {}
  CKPLAN_DEVICE int64_t Of(int64_t plane, int64_t index) const {
    const int64_t first = plane * in[0] * in[1] * in[2];
    if (!is_column_major) return first + index;
    const int64_t x = index % in[2];
    const int64_t y = index / in[2] % in[1];
    return first + (x * in[1] + y) * in[0] + index / (in[2] * in[1]);
  }
};

// Stores the maximum of output o.
struct MaxStore {
  FloatsOut y;
  int32_t* saved;
  int64_t* indices;
  Storage storage;
  CKPLAN_DEVICE void operator()(int64_t o, int64_t plane, const Found& found) const {
    if (!y.is_null()) y.Set(o, found.value);
    if (saved != nullptr) saved[o] = found.index;
    if (indices != nullptr) indices[o] = storage.Of(plane, found.index);
  }
};

// True if the maximum of output o is this element of its plane.
struct MaxLookUp {
  const int32_t* saved;
  const int64_t* indices;  // If null, `saved` is used.
  Storage storage;
  CKPLAN_DEVICE bool operator()(int64_t o, int64_t plane, int64_t index) const {
    return indices == nullptr ? saved[o] == index : indices[o] == storage.Of(plane, index);
  }
};

class MaxPoolOp final : public PreparedOp {
 public:
  MaxPoolOp(const OpSpec& spec, Device& device, const PoolShape& shape)
      : device_(device),
        shape_(shape),
        index_(shape),
        storage_(shape),
        x_type_(spec.input(0).type),
        y_type_(spec.output(0).type) {}

  void Forward(const ForwardCall& call) override {
    const FloatsIn x(call.inputs[0], x_type_);
    void* indices = call.outputs.size() > 1 ? call.outputs[1] : nullptr;
    const MaxStore store{FloatsOut(call.outputs[0], y_type_), static_cast<int32_t*>(call.statistic),
                         static_cast<int64_t*>(indices), storage_};
    if (HasTeams()) {
      FindInPlanes(x, store);
    } else {
      FindInWindows(x, store);
    }
  }

  void BackwardInput(const BackwardCall& call, size_t, void* gradient) override {
    const FloatsIn dy(call.output_gradients[0], y_type_);
    const FloatsOut dx(gradient, x_type_);
    const MaxLookUp is_maximum{
        static_cast<const int32_t*>(call.statistic),
        shape_.saves_output ? static_cast<const int64_t*>(call.outputs[1]) : nullptr, storage_};
    if (HasTeams()) {
      PassPlanes(dy, is_maximum, dx);
    } else {
      PassWindows(dy, is_maximum, dx);
    }
  }

  // Public, because nvcc does not allow kernels in private methods.
  void FindInPlanes(FloatsIn x, MaxStore store) {
    const int64_t size = shape_.in();
    ForRows(device_, shape_.planes, size, [=] CKPLAN_KERNEL(const Team& team, int64_t plane) {
      const Found found = team.Reduce(
          size, Found{-HUGE_VALF, -1},
          [&](int64_t i) {
            return Found{x[plane * size + i], static_cast<int32_t>(i)};
          },
          GreaterOf());
      if (team.IsFirst()) store(plane, plane, found);
    });
  }

  void FindInWindows(FloatsIn x, MaxStore store) {
    const PoolIndex index = index_;
    ForEach(device_, shape_.planes * shape_.out(), [=] CKPLAN_KERNEL(int64_t o) {
      const PoolPlace place = index.FindOutput(o);
      Found found{-HUGE_VALF, -1};
      index.ForInputs(place, [&](int64_t i) {
        const float value = x[index.InputAt(place, i)];
        found = GreaterOf()(found, Found{value, static_cast<int32_t>(i)});
      });
      store(o, place.plane(), found);
    });
  }

  void PassPlanes(FloatsIn dy, MaxLookUp is_maximum, FloatsOut dx) {
    const int64_t size = shape_.in();
    const Divider by_plane(std::max<int64_t>(1, size));
    ForEach(device_, shape_.planes * size, [=] CKPLAN_KERNEL(int64_t i) {
      int64_t at = i;
      const int64_t plane = by_plane.Split(at);
      dx.Set(i, is_maximum(plane, plane, at) ? dy[plane] : 0.0F);
    });
  }

  void PassWindows(FloatsIn dy, MaxLookUp is_maximum, FloatsOut dx) {
    const PoolIndex index = index_;
    ForEach(device_, shape_.planes * shape_.in(), [=] CKPLAN_KERNEL(int64_t i) {
      const PoolPlace place = index.FindInput(i);
      const int64_t at = index.InPlane(place);
      float sum = 0;
      index.ForOutputs(place, [&](int64_t z, int64_t y, int64_t x) {
        const int64_t o = index.OutputAt(place, z, y, x);
        if (is_maximum(o, place.plane(), at)) sum += dy[o];
      });
      dx.Set(i, sum);
    });
  }

 private:
  // True if a team finds the maximum of a plane, whose elements are then adjacent.
  bool HasTeams() const { return shape_.is_one_window() && shape_.interleaved == 1; }

  Device& device_;
  PoolShape shape_;
  PoolIndex index_;
  Storage storage_;
  ElementType x_type_, y_type_;
};

}  // namespace

Result<std::unique_ptr<PreparedOp>> PrepareMaxPool(const OpSpec& spec, Device& device) {
  CKPLAN_ASSIGN_OR_RETURN(const PoolShape shape, ReadPoolShape(spec));
  return Prepared<MaxPoolOp>(spec, device, shape);
}

std::span<const OpRow> PoolOps() {
  static constexpr OpRow kRows[] = {
      {"AveragePool", PrepareAveragePool},
      {"GlobalAveragePool", PrepareAveragePool},
      {"GlobalMaxPool", PrepareMaxPool},
      {"MaxPool", PrepareMaxPool},
  };
  return kRows;
}

}  // namespace ckplan::cuda
