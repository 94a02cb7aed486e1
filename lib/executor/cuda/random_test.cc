// Random operators on a GPU. Their output must also equal that of the generator that all backends
// share.
#include <doctest/doctest.h>

#include <cmath>

#include "lib/executor/cuda/test_backend.h"
#include "lib/executor/reference/random_checks.h"
#include "lib/problem/ops/counter_rng.h"

namespace ckplan::cuda {
namespace {

using reference::DrawForward;
using reference::DrawnFrom;
using reference::DrawnOp;
using reference::ForwardResult;
using reference::ValuesOf;

TEST_CASE("cuda: random numbers are CounterRng's for the seed and position") {
  const CounterRng rng(7);
  DrawnOp dropout = DrawnFrom(MakeTestBackend(), {"Dropout", "f4003 fs=[0.25] -> f4003 b4003"}, 1);
  DrawnOp uniform =
      DrawnFrom(MakeTestBackend(), {"RandomUniform", "-> f4003", "low=-1.0 high=3.0"}, 0);
  DrawnOp normal =
      DrawnFrom(MakeTestBackend(), {"RandomNormal", "-> f4003", "mean=5.0 scale=0.5"}, 0);
  DrawnOp floats = DrawnFrom(MakeTestBackend(), {"Bernoulli", "f4003 -> f4003"}, 0.3F);
  DrawnOp integers = DrawnFrom(MakeTestBackend(), {"Bernoulli", "f4003 -> n4003"}, 0.3F);
  const ForwardResult dropped = DrawForward(dropout, 7);
  const std::vector<double> kept = ValuesOf(dropout, dropped);
  const std::vector<double> mask = ValuesOf(dropout, dropped, 1);
  const std::vector<double> uniforms = ValuesOf(uniform, DrawForward(uniform, 7));
  const std::vector<double> normals = ValuesOf(normal, DrawForward(normal, 7));
  const std::vector<double> ones = ValuesOf(floats, DrawForward(floats, 7));
  const std::vector<double> integer_ones = ValuesOf(integers, DrawForward(integers, 7));
  int64_t wrong = 0;
  for (size_t i = 0; i < 4003; ++i) {
    const auto place = static_cast<int64_t>(i);
    const uint32_t bits = rng.Bits(place);
    const bool is_kept = bits >= DropoutThreshold(0.25);
    wrong += mask[i] != (is_kept ? 1.0 : 0.0);
    wrong += kept[i] != (is_kept ? static_cast<double>(static_cast<float>(1 / 0.75)) : 0.0);
    wrong += uniforms[i] != static_cast<double>(-1 + 4 * CounterRng::Uniform(bits));
    const bool is_one = CounterRng::Uniform(bits) < 0.3F;
    wrong += ones[i] != (is_one ? 1.0 : 0.0);
    wrong += integer_ones[i] != (is_one ? 1.0 : 0.0);
    // Double-precision functions may differ in the last bit between host and device, and so may the
    // rounded float.
    const uint64_t word = rng.Word(place / 2);
    const double radius =
        std::sqrt(-2 * std::log((static_cast<double>(word & 0xFFFFFFFFU) + 0.5) * 0x1p-32));
    const double angle = static_cast<double>(word >> 32) * (2 * M_PI * 0x1p-32);
    const double expected = 5 + 0.5 * radius * (i % 2 == 0 ? std::cos(angle) : std::sin(angle));
    wrong += std::abs(normals[i] - expected) > 1e-6;
  }
  CHECK(wrong == 0);
}

TEST_CASE("cuda: dropout: drops the ratio and scales the rest, in values and in gradients") {
  reference::CheckDropoutRatio(MakeTestBackend);
}

TEST_CASE("cuda: dropout: only the seed decides what is dropped, also in place") {
  reference::CheckDropoutSeed(MakeTestBackend);
}

TEST_CASE("cuda: dropout: ratios that drop everything and nothing") {
  reference::CheckDropoutExtremes(MakeTestBackend);
}

TEST_CASE("cuda: random tensors: means, deviations and bounds are right, and the seed decides") {
  reference::CheckDistributions(MakeTestBackend);
}

}  // namespace
}  // namespace ckplan::cuda
