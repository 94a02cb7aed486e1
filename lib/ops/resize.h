// Resize and Upsample: what each coordinate of the output is made of, axis by axis, read off
// attributes, shapes and known inputs. Names and formulas are those of ONNX.
#pragma once

#include <vector>

#include "lib/base/result.h"
#include "lib/ops/families.h"
#include "lib/ops/op_spec.h"
#include "lib/ops/taps.h"

namespace ckplan {

struct ResizeShape {
  std::vector<AxisTaps> axes;
  bool selects = false;  // Each element has one tap at most, of weight 1: any type is resized.
  float fill = 0;        // Where there is no tap.
};

Result<ResizeShape> ReadResizeShape(const OpSpec& spec);

}  // namespace ckplan
