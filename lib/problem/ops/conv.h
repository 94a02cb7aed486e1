// The shape of Conv and ConvTranspose.
//
// Both are described as a Conv from an image to a map: the image is the input of Conv and the
// output of ConvTranspose, and the map is the output of Conv and the input of ConvTranspose. The
// forward computation of one is the gradient of the other with respect to its input.
#pragma once

#include <cstdint>

#include "lib/base/result.h"
#include "lib/problem/ops/families.h"
#include "lib/problem/ops/op_spec.h"
#include "lib/problem/ops/window.h"

namespace ckplan {

struct ConvShape {
  bool is_transposed = false;
  bool has_bias = false;  // One value for each output channel.
  int64_t batch = 1, groups = 1;
  int64_t in_channels = 1;   // The image is [batch, in_channels, window.in...].
  int64_t out_channels = 1;  // The weights are [out_channels, in_channels / groups, kernel...].
  Window window;             // From the image to the map; one to three axes.
};

Result<ConvShape> ReadConvShape(const OpSpec& spec);

}  // namespace ckplan
