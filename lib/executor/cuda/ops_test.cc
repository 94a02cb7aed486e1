// Tests the operators of the CUDA backend against the double-precision reference, with the cases of
// the CPU backend; see lib/executor/testing/op_case.h.
#include <doctest/doctest.h>

#include <cmath>

#include "lib/executor/cuda/registry.h"
#include "lib/executor/cuda/testing/test_backend.h"
#include "lib/executor/scalar/random.h"
#include "lib/executor/testing/check_bfloat16.h"
#include "lib/executor/testing/check_op.h"
#include "lib/executor/testing/check_run.h"
#include "lib/executor/testing/op_case.h"
#include "lib/executor/testing/random_checks.h"
#include "lib/problem/ops/families.h"

namespace ckplan::cuda {

namespace {

constexpr uint64_t kSeed = 20240607;

using Check = std::vector<std::string> (*)(Backend&, const reference::CaseRow&, uint64_t);

void CheckCases(std::span<const reference::CaseRow> rows, Check check = reference::CheckOp) {
  reference::ReusingBackend backend(MakeTestBackend());
  const bool has_host = MakeHost() != nullptr;
  for (const reference::CaseRow& row : rows) {
    if (!has_host && !backend.Prepare(reference::SpecOfCase(row)).ok()) continue;
    const std::vector<std::string> faults = check(backend, row, kSeed);
    std::string message;
    for (const std::string& fault : faults) message += fault + "\n";
    CHECK_MESSAGE(faults.empty(), message);
  }
}

// Runs each case in float32, with activations and their gradients as bfloat16, and with the
// channels last, where the operator takes them so.
#define CKPLAN_FAMILY(Name)                                             \
  TEST_CASE("cuda: " #Name) { CheckCases(reference::Name##Cases()); }   \
  TEST_CASE("cuda: " #Name ", stored as bfloat16") {                    \
    CheckCases(reference::Name##Cases(), reference::CheckBFloat16);     \
    CheckCases(reference::Name##Cases(), reference::CheckChannelsLast); \
  }
#include "lib/problem/ops/families.def"
#undef CKPLAN_FAMILY

TEST_CASE("cuda: the backend has each operator of the families once") {
  const auto rows = Table().rows();
  const auto families = AllFamilyRows();
  REQUIRE(rows.size() == families.size());
  for (size_t i = 0; i < rows.size(); ++i) CHECK(rows[i].type == families[i].type);
}

}  // namespace

// Random operators on a GPU. Their output must also equal that of the generator that all backends
// share.

namespace {

using reference::DrawForward;
using reference::DrawnFrom;
using reference::DrawnOp;
using reference::ForwardResult;
using reference::ValuesOf;

TEST_CASE("cuda: random numbers are CounterRng's for the seed and position") {
  if (MakeHost() == nullptr) return;  // It draws some of them.
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
  if (MakeHost() != nullptr) reference::CheckDistributions(MakeTestBackend);
}

}  // namespace

}  // namespace ckplan::cuda
