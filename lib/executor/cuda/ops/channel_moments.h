// Moments and sums of gradients of whole channels, each computed by as many blocks of threads as
// are worthwhile. moments.h has the version for a single team.
#pragma once

#include "lib/executor/cuda/channels.h"
#include "lib/executor/cuda/ops/moments.h"

namespace ckplan::cuda {

namespace detail {

struct GradientAndProduct {
  const Moments* moments;
  CKPLAN_DEVICE GradientSums operator()(int64_t channel, float x, float gradient) const {
    return {gradient, gradient * (x - moments[channel].mean)};
  }
};

// What is known of some elements: their number, their mean, and the sum of the squares of their
// distances from it.
struct Spread {
  float count, mean, squares;
};

// Merges the spreads of two sets of elements; see Chan, Golub, LeVeque, "Updating Formulae and a
// Pairwise Algorithm for Computing Sample Variances" (1979), equation 2.1. No large numbers are
// subtracted from each other, so that the variance is precise even for data far from 0.
struct MergeSpreads {
  CKPLAN_DEVICE Spread operator()(const Spread& a, const Spread& b) const {
    if (b.count == 0) return a;
    if (a.count == 0) return b;
    const float count = a.count + b.count;
    const float share = b.count / count;
    const float distance = b.mean - a.mean;
    return {count, a.mean + distance * share,
            a.squares + b.squares + distance * distance * (a.count * share)};
  }
};

struct SpreadOf {
  CKPLAN_DEVICE Spread operator()(int64_t, float x, float) const { return {1, x, 0}; }
  CKPLAN_DEVICE Spread OfGroup(int64_t, const Float4& x, const Float4&) const {
    constexpr auto kCount = static_cast<float>(kVector);
    const float mean = ((x.at[0] + x.at[1]) + (x.at[2] + x.at[3])) / kCount;
    Spread spread{kCount, mean, 0};
    for (int k = 0; k < kVector; ++k) {
      spread.squares += (x.at[k] - mean) * (x.at[k] - mean);
    }
    return spread;
  }
};

template <typename Finish>
struct FinishMoments {
  float count;
  Moments* moments;
  Finish finish;
  CKPLAN_KERNEL void operator()(int64_t channel, const Spread& all) const {
    moments[channel].mean = all.mean;
    finish(channel, all.squares / count);
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

inline int64_t MomentsWorkspace(const ChannelReduction& reduction) {
  return reduction.workspace<detail::Spread>();
}

// Computes the mean of each channel of `count` elements, and calls the kernel finish(channel,
// variance), which stores the inverse deviation. Reads x once. `parts` has
// MomentsWorkspace(reduction) bytes.
template <typename Finish>
void FindMoments(Device& device, const ChannelReduction& reduction, FloatsIn x, float count,
                 Moments* moments, const Finish& finish, void* parts) {
  reduction.Run(device, detail::Spread{0, 0, 0}, detail::SpreadOf(), detail::MergeSpreads(),
                detail::FinishMoments<Finish>{count, moments, finish}, parts, x);
}

// Sums, for each channel, the gradients and their products with the deviations from the mean.
// `parts` has reduction.workspace<GradientSums>() bytes.
inline void SumGradients(Device& device, const ChannelReduction& reduction, FloatsIn x, FloatsIn dy,
                         const Moments* moments, GradientSums* sums, void* parts) {
  reduction.Run(device, GradientSums{0, 0}, detail::GradientAndProduct{moments},
                MergeGradientSums(), StoreSums{sums}, parts, x, dy);
}

}  // namespace ckplan::cuda
