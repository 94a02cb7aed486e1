// Code shared by the pools: which inputs a window covers, and which windows cover an input.
#pragma once

#include <algorithm>

#include "lib/cuda/index.h"
#include "lib/cuda/registry.h"
#include "lib/ops/pool.h"

namespace ckplan::cuda {

// Defined in average_pool.cu and max_pool.cu; they include the global pools.
Result<std::unique_ptr<PreparedOp>> PrepareAveragePool(const OpSpec& spec, Device& device);
Result<std::unique_ptr<PreparedOp>> PrepareMaxPool(const OpSpec& spec, Device& device);

// Position of an element in a tensor of planes.
struct PoolPlace {
  int64_t plane, z, y, x;
};

// A plane has less than 2^31 elements, but positions reached by padding and dilation may be beyond.
class PoolIndex {
 public:
  explicit PoolIndex(const PoolShape& shape) {
    for (int i = 0; i < 3; ++i) {
      const PoolAxis& from = shape.axes[static_cast<size_t>(i)];
      axes_[i] = {Divider(std::max<int64_t>(1, from.in)),
                  Divider(std::max<int64_t>(1, from.out)),
                  Divider(from.stride),
                  from.kernel,
                  from.dilation,
                  from.begin};
    }
  }

  CKPLAN_DEVICE int64_t in(int axis) const { return axes_[axis].in.divisor(); }
  CKPLAN_DEVICE int64_t out(int axis) const { return axes_[axis].out.divisor(); }
  CKPLAN_DEVICE PoolPlace FindInput(int64_t i) const {
    const int64_t row = axes_[2].in.Split(i);
    int64_t y = row;
    int64_t z = axes_[1].in.Split(y);
    const int64_t plane = axes_[0].in.Split(z);
    return {plane, z, y, i};
  }
  CKPLAN_DEVICE PoolPlace FindOutput(int64_t i) const {
    const int64_t row = axes_[2].out.Split(i);
    int64_t y = row;
    int64_t z = axes_[1].out.Split(y);
    const int64_t plane = axes_[0].out.Split(z);
    return {plane, z, y, i};
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
  struct Axis {
    Divider in, out, stride;
    int64_t kernel = 1, dilation = 1, begin = 0;

    // The input that position k of the kernel reads; -1 if there is none.
    CKPLAN_DEVICE int64_t InputOf(int64_t o, int64_t k) const {
      const int64_t at = o * stride.divisor() - begin + k * dilation;
      return at < in.divisor() ? Max(at, -1) : -1;
    }
    CKPLAN_DEVICE int64_t OutputOf(int64_t at, int64_t k) const {
      int64_t reach = at + begin - k * dilation;
      if (reach < 0) return -1;
      const int64_t o = stride.Split(reach);
      return reach == 0 && o < out.divisor() ? o : -1;
    }
  };

  Axis axes_[3];
};

}  // namespace ckplan::cuda
