// The shape of LRN: local response normalisation across neighbouring channels.
//
//   base = bias + factor * (sum of x² over the window of channels),  y = x base^-beta
#pragma once

#include <cstdint>

#include "lib/base/result.h"
#include "lib/problem/ops/channels.h"
#include "lib/problem/ops/families.h"
#include "lib/problem/ops/op_spec.h"

namespace ckplan {

struct LrnShape {
  ChannelView view;
  int64_t size = 1;                      // Number of channels in a window.
  float factor = 0, beta = 0, bias = 0;  // factor: the attribute alpha divided by the size.
};

Result<LrnShape> ReadLrnShape(const OpSpec& spec);

}  // namespace ckplan
