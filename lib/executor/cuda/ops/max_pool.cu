// MaxPool and GlobalMaxPool. The statistic, or the operator's second output, holds the index of
// each maximum within its plane. In backward, each input element looks up which outputs chose it,
// so that no two threads add to one element.
#include <math.h>

#include "lib/executor/cuda/launch.h"
#include "lib/executor/cuda/ops/pool.h"

namespace ckplan::cuda {

namespace {

struct Found {
  float value;
  int32_t index;  // In its plane; -1 if nothing was found yet.
};

// Returns the larger of two values, or the first if they are equal; NaN counts as greater than all
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

// Returns whether the maximum of output o is this element of its plane.
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
  // Whether a team finds the maximum of a plane, whose elements are then neighbours.
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

}  // namespace ckplan::cuda
