// The normalisation of a channel by its moments, for MapChannels and for fused chains.
#pragma once

#include "lib/executor/cuda/ops/moments.h"

namespace ckplan::cuda {

struct NormaliseChannel {
  const Moments* moments;
  FloatsIn scale, bias;
  struct Line {
    float mean, factor, bias;
    CKPLAN_DEVICE float operator()(float x, float) const { return (x - mean) * factor + bias; }
  };
  CKPLAN_DEVICE Line LineOf(int64_t c) const {
    const Moments own = moments[c];
    return {own.mean, scale[c] * own.inverse, bias[c]};
  }
};

}  // namespace ckplan::cuda
