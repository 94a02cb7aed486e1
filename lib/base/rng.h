// A small random generator (splitmix64) whose sequence is the same on every platform.
// std::uniform_int_distribution cannot be used, as its results differ between standard libraries.
#pragma once

#include <cstdint>

namespace ckplan {

class Rng {
 public:
  explicit Rng(uint64_t seed) : state_(seed) {}

  uint64_t Next() { return Mix(state_ += kStep); }

  // Returns the same number as call `index` (from 0) of Next for this seed. Kernels use it to draw
  // numbers in parallel.
  static constexpr uint64_t At(uint64_t seed, uint64_t index) {
    return Mix(seed + (index + 1) * kStep);
  }

  // Returns a uniform number in [low, high]. The ranges in tests keep the modulo bias below 2^-32.
  int64_t Between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(Next() % static_cast<uint64_t>(high - low + 1));
  }

  // Returns true with a probability of `percent` / 100.
  bool Chance(int percent) { return Between(1, 100) <= percent; }

 private:
  static constexpr uint64_t kStep = 0x9e3779b97f4a7c15U;

  static constexpr uint64_t Mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
  }

  uint64_t state_;
};

}  // namespace ckplan
