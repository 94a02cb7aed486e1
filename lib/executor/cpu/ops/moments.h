// Mean and deviation of a range of floats, and the gradient of a normalisation by them:
//
//   y = scale (x - mean) / deviation + bias,  x̂ = (x - mean) / deviation
//   dx = (g - mean(g) - x̂ mean(g x̂)) / deviation,  g = scale dy
#pragma once

#include <cmath>

#include "lib/executor/cpu/sum.h"

namespace ckplan::cpu {

struct Moments {
  float mean = 0, inverse_deviation = 0;
};

inline Moments MomentsOf(const float* x, int64_t count, float epsilon) {
  Moments moments;
  const auto size = static_cast<double>(count);
  const auto mean = static_cast<float>(Sum(x, count) / size);
  const double squares =
      SumTerms(count, [x, mean](int64_t i) { return (x[i] - mean) * (x[i] - mean); });
  moments.mean = mean;
  moments.inverse_deviation = 1 / std::sqrt(static_cast<float>(squares / size) + epsilon);
  return moments;
}

// Sums that the gradients of a normalised range have in common.
struct GradientSums {
  double gradient = 0;  // Sum of g.
  double product = 0;   // Sum of g x̂.
};

// g(i) is the gradient of x̂ at i.
template <typename Gradient>
GradientSums SumGradients(const float* x, Moments moments, int64_t count, const Gradient& g) {
  const double sum = SumTerms(count, g);
  const double product =
      SumTerms(count, [x, moments, &g](int64_t i) { return g(i) * (x[i] - moments.mean); });
  return {sum, product * static_cast<double>(moments.inverse_deviation)};
}

// `size` is the number of elements that were normalised together; `count` of them are given here.
template <typename Gradient>
void PassGradients(const float* x, Moments moments, GradientSums sums, int64_t size, int64_t count,
                   const Gradient& g, float* dx) {
  const float inverse = moments.inverse_deviation;
  const auto mean = static_cast<float>(sums.gradient / static_cast<double>(size));
  const float slope = static_cast<float>(sums.product / static_cast<double>(size)) * inverse;
  for (int64_t i = 0; i < count; ++i) {
    dx[i] = inverse * (g(i) - mean - slope * (x[i] - moments.mean));
  }
}

}  // namespace ckplan::cpu
