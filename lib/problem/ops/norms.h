// Shapes of normalizations.
#pragma once

#include <cstdint>

#include "lib/base/result.h"
#include "lib/problem/ops/families.h"
#include "lib/problem/ops/layout.h"
#include "lib/problem/ops/op_spec.h"

namespace ckplan {

// The shape of BatchNormalization.
struct BatchNormShape {
  ChannelView view;
  float epsilon = 0;
  bool has_statistic = false;  // Forward saves each channel's mean and inverse standard deviation.
  // The position of the first input whose gradient is requested. The sums that all gradients share
  // are computed along with this one.
  size_t first_gradient = 2;
};

Result<BatchNormShape> ReadBatchNormShape(const OpSpec& spec);

// The shape of GroupNormalization and of InstanceNormalization, where each channel is a group.
struct GroupNormShape {
  int64_t samples = 1, groups = 1, positions = 1;
  int64_t group_channels = 1;  // Channels of one group.
  int64_t scale_channels = 1;  // Channels that share a scale and a bias.
  float epsilon = 0;
  bool has_statistic = false;  // Forward saves each group's mean and inverse standard deviation.

  int64_t channels() const { return groups * group_channels; }
  int64_t group_size() const { return group_channels * positions; }
  int64_t parameters() const { return channels() / scale_channels; }
};

Result<GroupNormShape> ReadGroupNormShape(const OpSpec& spec);

// The shape of LayerNormalization and RMSNormalization, which normalise each row separately.
struct LayerNormShape {
  int64_t rows = 1, size = 1;
  // True for LayerNormalization, which subtracts the mean; RMSNormalization does not.
  bool has_mean = false;
  bool has_bias = false;
  float epsilon = 0;
};

Result<LayerNormShape> ReadLayerNormShape(const OpSpec& spec);

// The shape of LpNormalization and GlobalLpPool, which compute the p-norm of lines.
struct LpNormShape {
  AxisView view;  // A line is the elements along the axis of length `size`.
  int64_t p = 2;
};

Result<LpNormShape> ReadLpNormShape(const OpSpec& spec);

// The shape of LRN: local response normalisation across neighbouring channels.
//
//   base = bias + factor * (sum of x² over the window of channels),  y = x base^-beta
struct LrnShape {
  ChannelView view;
  int64_t size = 1;                      // Number of channels in a window.
  float factor = 0, beta = 0, bias = 0;  // factor: the attribute alpha divided by the size.
};

Result<LrnShape> ReadLrnShape(const OpSpec& spec);

// The shape of MeanVarianceNormalization. The axes that are not averaged must be adjacent; together
// they are the channels.

using MeanVarianceNormShape = ChannelView;

Result<MeanVarianceNormShape> ReadMeanVarianceNormShape(const OpSpec& spec);

}  // namespace ckplan
