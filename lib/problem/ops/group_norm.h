// The shape of GroupNormalization, and of InstanceNormalization, in which each channel is a group.
#pragma once

#include <cstdint>

#include "lib/base/result.h"
#include "lib/problem/ops/families.h"
#include "lib/problem/ops/op_spec.h"

namespace ckplan {

struct GroupNormShape {
  int64_t samples = 1, groups = 1, positions = 1;
  int64_t group_channels = 1;  // Channels of one group.
  int64_t scale_channels = 1;  // Channels that share a scale and a bias.
  float epsilon = 0;
  bool has_statistic = false;  // Mean and inverse standard deviation of each group are saved.

  int64_t channels() const { return groups * group_channels; }
  int64_t group_size() const { return group_channels * positions; }
  int64_t parameters() const { return channels() / scale_channels; }
};

Result<GroupNormShape> ReadGroupNormShape(const OpSpec& spec);

}  // namespace ckplan
