// Moments and sums of gradients of whole channels, each computed by as many blocks of threads as
// are worthwhile. moments.h has the version for a single team.
#pragma once

#include "lib/cuda/channels.h"
#include "lib/cuda/ops/moments.h"

namespace ckplan::cuda {

namespace detail {

struct SquaredDistance {
  const Moments* moments;
  CKPLAN_DEVICE float operator()(int64_t channel, float x, float) const {
    const float distance = x - moments[channel].mean;
    return distance * distance;
  }
};

struct GradientAndProduct {
  const Moments* moments;
  CKPLAN_DEVICE GradientSums operator()(int64_t channel, float x, float gradient) const {
    return {gradient, gradient * (x - moments[channel].mean)};
  }
};

struct StoreMean {
  float count;
  Moments* moments;
  CKPLAN_KERNEL void operator()(int64_t channel, float sum) const {
    moments[channel].mean = sum / count;
  }
};

template <typename Finish>
struct FinishVariance {
  float count;
  Finish finish;
  CKPLAN_KERNEL void operator()(int64_t channel, float squares) const {
    finish(channel, squares / count);
  }
};

}  // namespace detail

// The place where Reduce stores sums of gradients.
struct StoreSums {
  GradientSums* sums;
  CKPLAN_KERNEL void operator()(int64_t channel, const GradientSums& all) const {
    sums[channel] = all;
  }
};

// Computes the mean of each channel of `count` elements, then calls the kernel finish(channel,
// variance), which stores the inverse deviation. `parts` has reduction.workspace<float>() bytes.
template <typename Finish>
void FindMoments(Device& device, const ChannelReduction& reduction, FloatsIn x, float count,
                 Moments* moments, const Finish& finish, void* parts) {
  reduction.Run(device, 0.0F, ElementItself(), SumOf(), detail::StoreMean{count, moments}, parts,
                x);
  reduction.Run(device, 0.0F, detail::SquaredDistance{moments}, SumOf(),
                detail::FinishVariance<Finish>{count, finish}, parts, x);
}

// Sums, for each channel, the gradients and their products with the deviations from the mean.
// `parts` has reduction.workspace<GradientSums>() bytes.
inline void SumGradients(Device& device, const ChannelReduction& reduction, FloatsIn x, FloatsIn dy,
                         const Moments* moments, GradientSums* sums, void* parts) {
  reduction.Run(device, GradientSums{0, 0}, detail::GradientAndProduct{moments},
                MergeGradientSums(), StoreSums{sums}, parts, x, dy);
}

}  // namespace ckplan::cuda
