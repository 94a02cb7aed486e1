// What random operators make of random bits (lib/problem/ops/counter_rng.h). All backends draw
// equal numbers.
#pragma once

#include <math.h>

#include <cstdint>

#include "lib/executor/scalar/device_function.h"
#include "lib/problem/ops/counter_rng.h"

namespace ckplan::scalar {

// Returns a * b + c with two roundings; nvcc would fuse them into one.
CKPLAN_DEVICE inline float MultiplyAdd(float a, float b, float c) {
#ifdef __CUDA_ARCH__
  return __fadd_rn(__fmul_rn(a, b), c);
#else
  const float product = a * b;
  return product + c;
#endif
}

// Dropout of one element.
struct Drop {
  explicit Drop(double ratio)
      : threshold(DropoutThreshold(ratio)),
        scale(ratio < 1 ? static_cast<float>(1 / (1 - ratio)) : 0.0F) {}
  CKPLAN_DEVICE bool Keeps(uint32_t bits) const { return bits >= threshold; }
  CKPLAN_DEVICE float operator()(uint32_t bits, float x) const {
    return Keeps(bits) ? x * scale : 0.0F;
  }
  uint64_t threshold;
  float scale;
};

// A number of [low, high).
struct Uniform {
  Uniform(float from, float to) : low(from), high(to), width(to - from) {}
  CKPLAN_DEVICE float operator()(uint32_t bits) const {
    // Rounding may reach the upper bound, which is excluded from the interval.
    const float value = MultiplyAdd(width, CounterRng::Uniform(bits), low);
    return value < high ? value : low;
  }
  float low, high, width;
};

// The Box-Muller transform: the two halves of a random word give two normal numbers.
struct Normal {
  struct Pair {
    float first, second;
  };
  CKPLAN_DEVICE Pair operator()(uint64_t word) const {
    constexpr double kTurn = 2 * 3.14159265358979323846 * 0x1p-32;
    const double distance = (static_cast<double>(word & 0xFFFFFFFFU) + 0.5) * 0x1p-32;
    const double angle = static_cast<double>(word >> 32) * kTurn;
    const double radius = scale * sqrt(-2 * log(distance));
    return {static_cast<float>(mean + radius * cos(angle)),
            static_cast<float>(mean + radius * sin(angle))};
  }
  double mean, scale;
};

// True with the given probability.
struct Bernoulli {
  CKPLAN_DEVICE bool operator()(uint32_t bits, float probability) const {
    return CounterRng::Uniform(bits) < probability;
  }
};

}  // namespace ckplan::scalar
