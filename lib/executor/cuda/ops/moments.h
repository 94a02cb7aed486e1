// Mean and deviation of jointly normalised elements, and the gradient of a normalisation:
//
//   y = scale (x - mean) / deviation + bias,  x̂ = (x - mean) / deviation
//   dx = (g - mean(g) - x̂ mean(g x̂)) / deviation,  g = scale dy
//
// The deviation is precise even for data far from 0: either the mean is computed first, then the
// squared distances from it, or moments of parts are merged.
#pragma once

#include <math.h>

#include "lib/executor/cuda/channels.h"
#include "lib/executor/cuda/launch.h"

namespace ckplan::cuda {

struct Moments {
  float mean, inverse;  // 1 / deviation.
};

// x(i) returns element i. `keeps_mean` is false for a root mean square, whose mean counts as 0.
template <typename X>
CKPLAN_KERNEL Moments MomentsOf(const Team& team, int64_t count, float epsilon, bool keeps_mean,
                                const X& x) {
  const auto size = static_cast<float>(count);
  const float mean = keeps_mean ? team.Sum(count, x) / size : 0.0F;
  const float squares = team.Sum(count, [&](int64_t i) { return (x(i) - mean) * (x(i) - mean); });
  return {mean, 1 / sqrtf(squares / size + epsilon)};
}

// Sums shared by the gradients of jointly normalised elements.
struct GradientSums {
  float gradient;  // Sum of g.
  float product;   // Sum of g (x - mean).
};
struct MergeGradientSums {
  CKPLAN_DEVICE GradientSums operator()(const GradientSums& a, const GradientSums& b) const {
    return {a.gradient + b.gradient, a.product + b.product};
  }
};

// Returns dx of one element; `sums` cover `count` elements.
CKPLAN_DEVICE inline float PassGradient(float x, float g, const Moments& moments,
                                        const GradientSums& sums, float count) {
  const float inverse = moments.inverse;
  const float slope = sums.product / count * inverse * inverse;
  return inverse * (g - sums.gradient / count - slope * (x - moments.mean));
}

// The whole backward pass of one row: reads x(i) and g(i), and calls store(i, dx).
template <typename X, typename G, typename Store>
CKPLAN_KERNEL void PassRow(const Team& team, int64_t count, const Moments& moments, bool keeps_mean,
                           const X& x, const G& g, const Store& store) {
  GradientSums sums = team.Reduce(
      count, GradientSums{0, 0},
      [&](int64_t i) {
        return GradientSums{g(i), g(i) * (x(i) - moments.mean)};
      },
      MergeGradientSums());
  if (!keeps_mean) sums.gradient = 0;
  const auto size = static_cast<float>(count);
  team.ForEach(count, [&](int64_t i) { store(i, PassGradient(x(i), g(i), moments, sums, size)); });
}

// Moments and gradient sums of whole channels, each computed by as many thread blocks as are
// worthwhile. Above are the versions for a single team.

namespace detail {

struct GradientAndProduct {
  const Moments* moments;
  CKPLAN_DEVICE GradientSums operator()(int64_t channel, float x, float gradient) const {
    return {gradient, gradient * (x - moments[channel].mean)};
  }
};

// A set of elements: their number, their mean, and the sum of their squared distances from it.
struct Spread {
  float count, mean, squares;
};

// Merges the spreads of two sets of elements; see Chan, Golub, LeVeque, "Updating Formulae and a
// Pairwise Algorithm for Computing Sample Variances" (1979), equation 2.1. It never subtracts large
// numbers, so the variance is precise even for data far from 0.
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

// Where Reduce stores gradient sums.
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

// Sums, per channel, the gradients and their products with the deviations from the mean. `parts`
// has reduction.workspace<GradientSums>() bytes.
inline void SumGradients(Device& device, const ChannelReduction& reduction, FloatsIn x, FloatsIn dy,
                         const Moments* moments, GradientSums* sums, void* parts) {
  reduction.Run(device, GradientSums{0, 0}, detail::GradientAndProduct{moments},
                MergeGradientSums(), StoreSums{sums}, parts, x, dy);
}

// Normalises a channel by its moments, for MapChannels and fused chains.
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
