// Linear maps that are applied along each axis independently; see lib/problem/ops/pad_resize.h.
// Each thread computes one output element by a loop over its taps.
#pragma once

#include <vector>

#include "lib/executor/cuda/device.h"
#include "lib/executor/cuda/index.h"
#include "lib/problem/ops/pad_resize.h"

namespace ckplan::cuda {

// The output where there is no tap: the element at `data` or, if that is null, `value` for floats
// and 0 for integers.
struct TapFill {
  const void* data = nullptr;
  ElementType type = ElementType::kFloat32;
  float value = 0;
};

class SeparableMap {
 public:
  SeparableMap() = default;
  // `axes` has one entry per axis; scalars have none. Fails with kUnsupported if there are more
  // axes than kernels support.
  static Result<SeparableMap> Create(const OpSpec& spec, Device& device,
                                     const std::vector<AxisTaps>& axes);

  void Run(Device& device, const void* from, ElementType from_type, void* to, ElementType to_type,
           float fill = 0) const;
  // Selects elements of any type. Each output element has at most one tap, whose weight is taken as
  // 1.
  void Select(Device& device, const void* from, ElementType from_type, void* to,
              ElementType to_type, const TapFill& fill) const;

  struct Tap {
    int64_t index;
    float weight;
  };
  // The taps of index i are [begin[i], begin[i + 1]); null if the axis stays unchanged.
  struct Axis {
    const int64_t* begin = nullptr;
    const Tap* taps = nullptr;
    int64_t stride = 0;  // In the input.
    Divider size;        // In the output.
  };

 private:
  std::vector<Axis> axes_;
  int64_t count_ = 0;  // Number of output elements.
  DeviceTable<int64_t> begins_;
  DeviceTable<Tap> taps_;
};

}  // namespace ckplan::cuda
