// Code shared by the pools: which inputs a window covers, and which windows cover an input.
#pragma once

#include "lib/executor/cuda/registry.h"
#include "lib/executor/cuda/window_axis.h"
#include "lib/problem/ops/sliding.h"

namespace ckplan::cuda {

// Defined in average_pool.cu and max_pool.cu; they include the global pools.
Result<std::unique_ptr<PreparedOp>> PrepareAveragePool(const OpSpec& spec, Device& device);
Result<std::unique_ptr<PreparedOp>> PrepareMaxPool(const OpSpec& spec, Device& device);

// Position of an element in a tensor of planes. Some planes lie interleaved; they are numbered from
// `first` on.
struct PoolPlace {
  int64_t first, lane, z, y, x;

  CKPLAN_DEVICE int64_t plane() const { return first + lane; }
};

// A plane has less than 2^31 elements, but positions reached by padding and dilation may be beyond.
class PoolIndex {
 public:
  explicit PoolIndex(const PoolShape& shape)
      : lanes_(std::max<int64_t>(1, shape.interleaved)), in_(shape.in()), out_(shape.out()) {
    for (int i = 0; i < 3; ++i) axes_[i] = DeviceWindowAxis(shape.axes[static_cast<size_t>(i)]);
  }

  CKPLAN_DEVICE int64_t in(int axis) const { return axes_[axis].in.divisor(); }
  CKPLAN_DEVICE int64_t out(int axis) const { return axes_[axis].out.divisor(); }
  // Returns the place of element i of the input in memory.
  CKPLAN_DEVICE PoolPlace FindInput(int64_t i) const {
    int64_t x = lanes_.Split(i);
    int64_t y = axes_[2].in.Split(x);
    int64_t z = axes_[1].in.Split(y);
    const int64_t first = axes_[0].in.Split(z) * lanes_.divisor();
    return {first, i, z, y, x};
  }
  // Returns the place of element i of the output in memory.
  CKPLAN_DEVICE PoolPlace FindOutput(int64_t i) const {
    int64_t x = lanes_.Split(i);
    int64_t y = axes_[2].out.Split(x);
    int64_t z = axes_[1].out.Split(y);
    const int64_t first = axes_[0].out.Split(z) * lanes_.divisor();
    return {first, i, z, y, x};
  }

  // Returns where element `at` of the plane of a place lies in memory, in the input.
  CKPLAN_DEVICE int64_t InputAt(const PoolPlace& place, int64_t at) const {
    return place.first * in_ + at * lanes_.divisor() + place.lane;
  }
  // Returns where the output at this position in the plane of a place lies in memory.
  CKPLAN_DEVICE int64_t OutputAt(const PoolPlace& place, int64_t z, int64_t y, int64_t x) const {
    return place.first * out_ + ((z * out(1) + y) * out(2) + x) * lanes_.divisor() + place.lane;
  }
  // Returns the index of a place of the input in its plane.
  CKPLAN_DEVICE int64_t InPlane(const PoolPlace& place) const {
    return (place.z * in(1) + place.y) * in(2) + place.x;
  }

  // Calls visit(index in the plane) for each input in the window of this output, in order.
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
  Divider lanes_;  // Planes that lie interleaved.
  int64_t in_, out_;
  DeviceWindowAxis axes_[3];
};

}  // namespace ckplan::cuda
