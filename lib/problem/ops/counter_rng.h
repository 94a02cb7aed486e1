// Random numbers as functions of a seed and a position. There is no state, so any part of a tensor
// can be drawn again, by any thread, in any order. All backends draw the same numbers.
//
// Two neighbouring positions share one word: the n-th word of splitmix64 (Steele, Lea, Flood: "Fast
// Splittable Pseudorandom Number Generators", OOPSLA 2014), started from the scrambled seed.
#pragma once

#include <cstdint>

namespace ckplan {

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
