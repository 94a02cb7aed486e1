// The shape of BatchNormalization.
#pragma once

#include <cstdint>

#include "lib/base/result.h"
#include "lib/problem/ops/channels.h"
#include "lib/problem/ops/families.h"
#include "lib/problem/ops/op_spec.h"

namespace ckplan {

struct BatchNormShape {
  ChannelView view;
  float epsilon = 0;
  bool has_statistic = false;  // Mean and inverse standard deviation of each channel are saved.
  // Position of the first input whose gradient is requested. The sums of the gradients, which the
  // other inputs need too, are computed together with that gradient.
  size_t first_gradient = 2;
};

Result<BatchNormShape> ReadBatchNormShape(const OpSpec& spec);

}  // namespace ckplan
