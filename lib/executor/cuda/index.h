// Tensor indices in kernels: layouts of fixed size, and division by constants.
#pragma once

#include <cstdint>

#include "lib/base/check.h"
#include "lib/executor/cuda/kernel.h"
#include "lib/problem/ops/layout.h"

namespace ckplan::cuda {

// Computes n / divisor by multiplication, about twenty times as fast on a GPU, for n below 2^31;
// larger n use ordinary division. See Granlund and Montgomery, "Division by Invariant Integers
// using Multiplication" (PLDI 1994), figure 4.1.
class Divider {
 public:
  Divider() = default;
  explicit Divider(int64_t divisor) : divisor_(divisor) {
    CKPLAN_CHECK(divisor > 0, "a walked tensor has elements");
    if (divisor > kMax) return;
    while ((int64_t{1} << shift_) < divisor) ++shift_;
    const uint64_t gap = (uint64_t{1} << shift_) - static_cast<uint64_t>(divisor);
    multiplier_ = static_cast<uint32_t>((gap << 32) / static_cast<uint64_t>(divisor) + 1);
  }

  CKPLAN_DEVICE int64_t divisor() const { return divisor_; }
  CKPLAN_DEVICE int64_t Quotient(int64_t n) const {
    if (n > kMax || divisor_ > kMax) return n / divisor_;
    const auto small = static_cast<uint32_t>(n);
    const auto high = static_cast<uint32_t>((uint64_t{small} * multiplier_) >> 32);
    return (high + small) >> shift_;
  }
  // Returns n / divisor and leaves the remainder in `n`.
  CKPLAN_DEVICE int64_t Split(int64_t& n) const {
    const int64_t quotient = Quotient(n);
    n -= quotient * divisor_;
    return quotient;
  }

 private:
  static constexpr int64_t kMax = 0x7FFFFFFF;

  int64_t divisor_ = 1;
  uint32_t multiplier_ = 1;
  uint32_t shift_ = 0;
};

inline constexpr int kMaxAxes = 8;

// A Layout with a fixed number of operands, for kernels.
template <int kOperands>
class DeviceLayout {
 public:
  DeviceLayout() = default;
  // `layout` has at most kMaxAxes axes (FitsDevice), and each axis has elements.
  explicit DeviceLayout(const Layout& layout) : rank_(static_cast<int>(layout.dims.size())) {
    CKPLAN_CHECK(rank_ <= kMaxAxes, "Prepare has rejected layouts with too many axes");
    count_ = layout.count();
    if (count_ == 0) return;
    for (int axis = 0; axis < rank_; ++axis) {
      const auto from = static_cast<size_t>(axis);
      dims_[axis] = Divider(layout.dims[from]);
      for (int k = 0; k < kOperands; ++k) {
        strides_[k][axis] = layout.strides[static_cast<size_t>(k)][from];
      }
    }
  }

  CKPLAN_DEVICE int64_t count() const { return count_; }

  struct Offsets {
    int64_t at[kOperands];
    CKPLAN_DEVICE int64_t operator[](int operand) const { return at[operand]; }
  };
  // Returns the offset of each operand at this row-major index.
  CKPLAN_DEVICE Offsets Find(int64_t index) const {
    Offsets offsets{};
    for (int axis = rank_ - 1; axis > 0; --axis) {
      const int64_t outer = dims_[axis].Quotient(index);
      const int64_t place = index - outer * dims_[axis].divisor();
      for (int k = 0; k < kOperands; ++k) offsets.at[k] += place * strides_[k][axis];
      index = outer;
    }
    for (int k = 0; k < kOperands; ++k) offsets.at[k] += index * strides_[k][0];
    return offsets;
  }
  // Returns the offset of one operand at this row-major index.
  CKPLAN_DEVICE int64_t FindOne(int operand, int64_t index) const {
    int64_t offset = 0;
    for (int axis = rank_ - 1; axis > 0; --axis) {
      const int64_t outer = dims_[axis].Quotient(index);
      offset += (index - outer * dims_[axis].divisor()) * strides_[operand][axis];
      index = outer;
    }
    return offset + index * strides_[operand][0];
  }

 private:
  int rank_ = 0;
  int64_t count_ = 0;
  Divider dims_[kMaxAxes];
  int64_t strides_[kOperands][kMaxAxes] = {};
};

inline bool FitsDevice(const Layout& layout) { return layout.dims.size() <= kMaxAxes; }

}  // namespace ckplan::cuda
