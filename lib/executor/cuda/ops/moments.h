// Mean and deviation of elements that are normalised together, and the gradient of a normalisation:
//
//   y = scale (x - mean) / deviation + bias,  x̂ = (x - mean) / deviation
//   dx = (g - mean(g) - x̂ mean(g x̂)) / deviation,  g = scale dy
//
// The deviation is precise even for data far from 0: either the mean is computed first and then the
// squared distances from it, as here, or moments of parts are merged (channel_moments.h).
#pragma once

#include <math.h>

#include "lib/executor/cuda/launch.h"

namespace ckplan::cuda {

struct Moments {
  float mean, inverse;  // 1 / deviation.
};

// x(i) returns element i. `keeps_mean` is false for a root mean square, whose mean is taken as 0.
template <typename X>
CKPLAN_KERNEL Moments MomentsOf(const Team& team, int64_t count, float epsilon, bool keeps_mean,
                                const X& x) {
  const auto size = static_cast<float>(count);
  const float mean = keeps_mean ? team.Sum(count, x) / size : 0.0F;
  const float squares = team.Sum(count, [&](int64_t i) { return (x(i) - mean) * (x(i) - mean); });
  return {mean, 1 / sqrtf(squares / size + epsilon)};
}

// Sums that the gradients of elements normalised together have in common.
struct GradientSums {
  float gradient;  // Sum of g.
  float product;   // Sum of g (x - mean).
};
struct MergeGradientSums {
  CKPLAN_DEVICE GradientSums operator()(const GradientSums& a, const GradientSums& b) const {
    return {a.gradient + b.gradient, a.product + b.product};
  }
};

// Returns dx of one element, given `sums` over `count` elements.
CKPLAN_DEVICE inline float PassGradient(float x, float g, const Moments& moments,
                                        const GradientSums& sums, float count) {
  const float inverse = moments.inverse;
  const float slope = sums.product / count * inverse * inverse;
  return inverse * (g - sums.gradient / count - slope * (x - moments.mean));
}

// Does the whole backward pass of one row: reads x(i) and g(i), and calls store(i, dx).
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

}  // namespace ckplan::cuda
