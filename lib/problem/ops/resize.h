// Resize and Upsample: finds, axis by axis, the elements of the input from which each element of
// the output is computed. They follow from attributes, shapes and known inputs. Names and formulas
// are ONNX's.
#pragma once

#include <vector>

#include "lib/base/result.h"
#include "lib/problem/ops/families.h"
#include "lib/problem/ops/op_spec.h"
#include "lib/problem/ops/taps.h"

namespace ckplan {

struct ResizeShape {
  std::vector<AxisTaps> axes;
  // Each element has at most one tap, of weight 1, so any type can be resized.
  bool selects = false;
  float fill = 0;  // The value of elements without a tap.
};

Result<ResizeShape> ReadResizeShape(const OpSpec& spec);

}  // namespace ckplan
