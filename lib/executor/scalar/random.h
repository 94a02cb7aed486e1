// How random operators turn random bits into numbers. All backends draw the same numbers.
#pragma once

#include <math.h>

#include <cstdint>

#include "lib/executor/scalar/integers.h"

namespace ckplan {

// Random numbers as functions of a seed and a position. With no state, any thread can redraw any
// part of a tensor in any order.
//
// Two neighbouring positions share one word: the n-th word of splitmix64 (Steele, Lea, Flood: "Fast
// Splittable Pseudorandom Number Generators", OOPSLA 2014), started from the scrambled seed.
class CounterRng {
 public:
  constexpr explicit CounterRng(uint64_t seed) : start_(Scramble(seed ^ 0xD1B54A32D192ED03U)) {}

  // The bits for the positions 2 * pair (the low half) and 2 * pair + 1 (the high half).
  constexpr uint64_t Word(int64_t pair) const {
    return Scramble(start_ + (static_cast<uint64_t>(pair) + 1) * 0x9E3779B97F4A7C15U);
  }
  constexpr uint32_t Bits(int64_t position) const {
    return static_cast<uint32_t>(Word(position / 2) >> (position % 2 == 0 ? 0 : 32));
  }
  // Maps random bits to a number in [0, 1), a multiple of 2^-24.
  static constexpr float Uniform(uint32_t bits) {
    return static_cast<float>(bits >> 8) * (1.0F / 16777216.0F);
  }

 private:
  static constexpr uint64_t Scramble(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31);
  }

  uint64_t start_;
};

// Dropout keeps the elements whose random bits are at least this threshold.
constexpr uint64_t DropoutThreshold(double ratio) {
  return ratio <= 0 ? 0 : ratio >= 1 ? uint64_t{1} << 32 : static_cast<uint64_t>(ratio * 0x1p32);
}

}  // namespace ckplan

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
