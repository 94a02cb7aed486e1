// The loss of a training step (lib/executor/core/loss.h), in parts that give bitwise identical
// results on the host and on a GPU: random numbers by index, sums whose order depends only on the
// shape, and e^x and ln x built from operations that round the same way everywhere.
#pragma once

#include <math.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lib/base/rng.h"
#include "lib/executor/scalar/integers.h"
#include "lib/executor/scalar/random.h"

namespace ckplan::scalar {

// A sum over elements has at most this many parts. Part p adds the elements with index p modulo
// this number, in order; then the parts are added in order.
inline constexpr int64_t kLossParts = 65536;
// The sum over the classes of one position has this many parts if the classes are adjacent in
// memory. They are added pairwise: p and p + 16, then p and p + 8, and so on.
inline constexpr int kClassParts = 32;

// Arithmetic that nvcc must not contract into fused operations.
CKPLAN_DEVICE inline double Times(double a, double b) {
#ifdef __CUDA_ARCH__
  return __dmul_rn(a, b);
#else
  return a * b;
#endif
}
CKPLAN_DEVICE inline double Plus(double a, double b) {
#ifdef __CUDA_ARCH__
  return __dadd_rn(a, b);
#else
  return a + b;
#endif
}

inline constexpr double kLn2High =
    6.93147180369123816490e-01;  // 33 bits, so that k * kLn2High is exact.
inline constexpr double kLn2Low = 1.90821492927058770002e-10;

// Returns e^x for x <= 0, and NaN for NaN. Below -708 it returns 0.
CKPLAN_DEVICE inline double ExpOfNegative(double x) {
  if (!(x >= -708)) return x < 0 ? 0 : x;
  const double k = floor(Plus(Times(x, 1.44269504088896338700), 0.5));
  const double r = Plus(Plus(x, -Times(k, kLn2High)), -Times(k, kLn2Low));
  // The Taylor polynomial of e^r, |r| <= 0.35.
  constexpr double kFactors[] = {1.0 / 6227020800,
                                 1.0 / 479001600,
                                 1.0 / 39916800,
                                 1.0 / 3628800,
                                 1.0 / 362880,
                                 1.0 / 40320,
                                 1.0 / 5040,
                                 1.0 / 720,
                                 1.0 / 120,
                                 1.0 / 24,
                                 1.0 / 6,
                                 1.0 / 2,
                                 1.0,
                                 1.0};
  double value = 0;
  for (const double factor : kFactors) value = Plus(Times(value, r), factor);
  return ldexp(value, static_cast<int>(k));
}

// Returns ln x for a positive normal x, and NaN for NaN.
CKPLAN_DEVICE inline double LogOf(double x) {
  if (!(x > 0)) return x;
  int exponent = 0;
  double fraction = frexp(x, &exponent);
  if (fraction < 0.70710678118654752440) {
    fraction *= 2;
    --exponent;
  }
  // ln m = 2 (s + s^3/3 + s^5/5 + ...) with s = (m - 1) / (m + 1), |s| <= 0.172.
  const double s = (fraction - 1) / (fraction + 1);
  const double square = Times(s, s);
  double series = 0;
  for (int n = 23; n >= 1; n -= 2) series = Plus(Times(series, square), 1.0 / n);
  const double low = Plus(Times(2, Times(s, series)), Times(exponent, kLn2Low));
  return Plus(Times(exponent, kLn2High), low);
}

// Element i of a random output gradient, uniform in [-bound, bound).
struct GivenGradient {
  CKPLAN_DEVICE float operator()(int64_t i) const {
    const auto word = Rng::At(seed, static_cast<uint64_t>(i));
    return MultiplyAdd(2 * bound, static_cast<float>(word >> 40) * 0x1p-24F, -bound);
  }
  uint64_t seed;
  float bound;
};

// The class scores of one position: they start at `first`, `stride` elements apart.
struct ClassScores {
  int64_t first = 0;
  int64_t stride = 1;
  CKPLAN_DEVICE int64_t At(int64_t k) const { return first + k * stride; }
};

// Cross-entropy over a class axis that has `outer` positions before it and `inner` after it.
struct CrossEntropy {
  CKPLAN_DEVICE int64_t positions() const { return outer * inner; }
  CKPLAN_DEVICE int64_t ClassParts() const { return inner == 1 ? kClassParts : 1; }
  CKPLAN_DEVICE ClassScores ScoresOf(int64_t position) const {
    return {position / inner * classes * inner + position % inner, inner};
  }
  CKPLAN_DEVICE int64_t LabelOf(int64_t position) const {
    const uint64_t word = Rng::At(seed, static_cast<uint64_t>(position));
    return static_cast<int64_t>(word % static_cast<uint64_t>(classes));
  }
  // The argument of e^x for a score: score - largest.
  CKPLAN_DEVICE static double Shifted(float score, float largest) {
    return static_cast<double>(score - largest);
  }
  CKPLAN_DEVICE double LossOf(double sum, float label_score, float largest) const {
    return Plus(LogOf(sum), -Shifted(label_score, largest)) / static_cast<double>(positions());
  }
  CKPLAN_DEVICE float GradientOf(double exponential, double sum, bool is_label) const {
    const double probability = exponential / sum;
    return static_cast<float>((probability - (is_label ? 1 : 0)) /
                              static_cast<double>(positions()));
  }
  uint64_t seed;
  int64_t outer;
  int64_t classes;
  int64_t inner;
};

// ---- For the host, which calls kernels
// -----------------------------------------------------------

inline GivenGradient GivenGradientOf(uint64_t seed, int64_t elements) {
  return {seed, 1.0F / sqrtf(static_cast<float>(elements < 1 ? 1 : elements))};
}

inline CrossEntropy CrossEntropyOf(uint64_t seed, const std::vector<int64_t>& dims, size_t axis) {
  CrossEntropy entropy{seed, 1, dims.empty() ? 1 : dims[axis], 1};
  for (size_t i = 0; i < dims.size(); ++i) {
    if (i != axis) (i < axis ? entropy.outer : entropy.inner) *= dims[i];
  }
  return entropy;
}

}  // namespace ckplan::scalar
