// Linear maps that act on each axis by itself, see lib/backend/taps.h. A thread has an element of
// the output, and walks its taps.
#pragma once

#include <vector>

#include "lib/cuda/device.h"
#include "lib/cuda/index.h"
#include "lib/ops/taps.h"

namespace ckplan::cuda {

// What stands where there is no tap: the element at `data`, or where that is null, `value` as a
// float and 0 as an integer.
struct TapFill {
  const void* data = nullptr;
  ElementType type = ElementType::kFloat32;
  float value = 0;
};

class SeparableMap {
 public:
  SeparableMap() = default;
  // One for each axis; scalars have none. kUnsupported: more axes than kernels walk.
  static Result<SeparableMap> Create(const OpSpec& spec, Device& device,
                                     const std::vector<AxisTaps>& axes);

  void Run(Device& device, const void* from, ElementType from_type, void* to, ElementType to_type,
           float fill = 0) const;
  // Of any type: at most one tap for each element, its weight taken as 1.
  void Select(Device& device, const void* from, ElementType from_type, void* to,
              ElementType to_type, const TapFill& fill) const;

  struct Tap {
    int64_t index;
    float weight;
  };
  // The taps of index i are [begin[i], begin[i + 1]); null where nothing happens to the axis.
  struct Axis {
    const int64_t* begin = nullptr;
    const Tap* taps = nullptr;
    int64_t stride = 0;  // Of the input.
    Divider size;        // Of the output.
  };

 private:
  std::vector<Axis> axes_;
  int64_t count_ = 0;  // Elements of the output.
  DeviceTable<int64_t> begins_;
  DeviceTable<Tap> taps_;
};

}  // namespace ckplan::cuda
