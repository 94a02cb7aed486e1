// One axis of sliding windows (lib/problem/ops/window.h) for kernels: which elements a window
// covers, and which windows cover an element.
#pragma once

#include <algorithm>

#include "lib/executor/cuda/index.h"
#include "lib/problem/ops/window.h"

namespace ckplan::cuda {

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

  // Returns the input that position k of the kernel reads in window o, or -1 if there is none.
  CKPLAN_DEVICE int64_t InputOf(int64_t o, int64_t k) const {
    const int64_t at = o * stride.divisor() - begin + k * dilation;
    return at < in.divisor() ? Max(at, -1) : -1;
  }
  // Returns the window that has position k of its kernel at this input, or -1 if there is none.
  CKPLAN_DEVICE int64_t OutputOf(int64_t at, int64_t k) const {
    int64_t reach = at + begin - k * dilation;
    if (reach < 0) return -1;
    const int64_t o = stride.Split(reach);
    return reach == 0 && o < out.divisor() ? o : -1;
  }
};

}  // namespace ckplan::cuda
