// A small random generator (splitmix64) whose sequence is the same on every platform.
// std::uniform_int_distribution cannot be used, as its results differ between standard libraries.
#pragma once

#include <cstdint>

namespace ckplan {

class Rng {
 public:
  explicit Rng(uint64_t seed) : state_(seed) {}

  uint64_t Next() { return Mixed(state_ += kStep); }

  // Returns what Next returns at call `index`, counted from 0, for this seed. Kernels use it.
  static constexpr uint64_t At(uint64_t seed, uint64_t index) {
    return Mixed(seed + (index + 1) * kStep);
  }

  // Returns a uniform number in [low, high]. The modulo bias is below 2^-32 for the ranges that
  // tests use.
  int64_t Between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(Next() % static_cast<uint64_t>(high - low + 1));
  }

  // Returns true with a probability of `percent` / 100.
  bool Chance(int percent) { return Between(1, 100) <= percent; }

 private:
  static constexpr uint64_t kStep = 0x9e3779b97f4a7c15U;

  static constexpr uint64_t Mixed(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
  }

  uint64_t state_;
};

}  // namespace ckplan
