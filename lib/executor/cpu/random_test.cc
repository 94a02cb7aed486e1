// The generator of random numbers that all backends share, and random operators on the CPU.
#include <doctest/doctest.h>

#include "lib/executor/cpu/cpu_backend.h"
#include "lib/executor/reference/random_checks.h"
#include "lib/problem/ops/counter_rng.h"

namespace ckplan::cpu {
namespace {

std::unique_ptr<Backend> TwoThreads() { return MakeCpuBackend(2); }

TEST_CASE("counter rng: the words equal splitmix64's") {
  // The expected words come from splitmix64 written out, starting from the scrambled initial state.
  const CounterRng rng(0);
  uint64_t state = 0xD1B54A32D192ED03U;
  const auto scramble = [](uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31);
  };
  state = scramble(state);
  for (int64_t pair = 0; pair < 9; ++pair) {
    state += 0x9E3779B97F4A7C15U;
    CHECK(rng.Word(pair) == scramble(state));
    CHECK(rng.Bits(2 * pair) == static_cast<uint32_t>(scramble(state)));
    CHECK(rng.Bits(2 * pair + 1) == static_cast<uint32_t>(scramble(state) >> 32));
  }
}

TEST_CASE("dropout: drops the ratio and scales the rest, in values and in gradients") {
  reference::CheckDropoutRatio(TwoThreads);
}

TEST_CASE("dropout: only the seed decides what is dropped, also in place") {
  reference::CheckDropoutSeed(TwoThreads);
}

TEST_CASE("dropout: ratios that drop everything and nothing") {
  reference::CheckDropoutExtremes(TwoThreads);
}

TEST_CASE("random tensors: means, deviations and bounds are right, and the seed decides") {
  reference::CheckDistributions(TwoThreads);
}

}  // namespace
}  // namespace ckplan::cpu
