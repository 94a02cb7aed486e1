// Tests the operators of the CPU backend against the double-precision reference. Each case is a row
// of a table; see lib/executor/testing/op_case.h.
#include <doctest/doctest.h>

#include "lib/executor/cpu/cpu_backend.h"
#include "lib/executor/cpu/registry.h"
#include "lib/executor/scalar/random.h"
#include "lib/executor/testing/check_op.h"
#include "lib/executor/testing/check_run.h"
#include "lib/executor/testing/op_case.h"
#include "lib/executor/testing/random_checks.h"
#include "lib/problem/ops/families.h"
#include "lib/problem/ops/op_table.h"

namespace ckplan::cpu {

namespace {

constexpr uint64_t kSeed = 20240607;

void CheckCases(std::span<const reference::CaseRow> rows) {
  const auto backend = MakeCpuBackend(2);
  for (const reference::CaseRow& row : rows) {
    const std::vector<std::string> faults = reference::CheckOp(*backend, row, kSeed);
    std::string message;
    for (const std::string& fault : faults) message += fault + "\n";
    CHECK_MESSAGE(faults.empty(), message);
  }
}

#define CKPLAN_FAMILY(Name) \
  TEST_CASE("cpu: " #Name) { CheckCases(reference::Name##Cases()); }
#include "lib/problem/ops/families.def"
#undef CKPLAN_FAMILY

// Random operators have no reference; ops_test.cc tests them.
bool IsRandom(std::string_view type) {
  return type.substr(0, 6) == "Random" || type == "Bernoulli" || type == "Dropout";
}

TEST_CASE("cpu: the backend has each operator of the families once") {
  const auto rows = Table().rows();
  const auto families = AllFamilyRows();
  REQUIRE(rows.size() == families.size());
  for (size_t i = 0; i < rows.size(); ++i) CHECK(rows[i].type == families[i].type);
}

TEST_CASE("cpu: every operator has cases, and a row in the table of operators") {
  for (const OpSupport& op : MakeCpuBackend(2)->Operators()) {
    CAPTURE(op.type);
    CHECK((IsRandom(op.type) || reference::CountCases(op.type) > 0));
    CHECK(RuleOf(op.type).is_known());
  }
}

}  // namespace

// The generator of random numbers that all backends share, and random operators on the CPU.

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

// Resize has many coordinate rules, which the project's reference could misread in the same way as
// the kernel. The values here are therefore results of ONNX's own reference implementation.

namespace {

struct Row {
  reference::CaseRow op;
  std::vector<double> expected;
};

const Row kRows[] = {
    {{"Resize@19", "f4x4@[1,4,9,5,3,3,5,9,4,1,0,1,4,9,5,3] _ f2=[0.6,0.6] _ -> f2x2",
      "mode='linear' coordinate_transformation_mode='align_corners'"},
     {1, 8.4285717, 4, 0.79591763}},
    {{"Resize@19", "f4x4@[1,4,9,5,3,3,5,9,4,1,0,1,4,9,5,3] _ f2=[0.8,1.7] _ -> f3x6",
      "mode='cubic'"},
     {0.934132814, 1.88048053, 3.75632095, 7.13177586, 8.62039566, 6.43993711, 3.76879239,
      2.81270099, 1.66971719, 1.51669741, 2.99150586, 5.48905277, 3.87901282, 4.9842248, 6.00655699,
      4.49303436, 2.4790678, 1.90154588}},
    {{"Resize@19", "f4x5@[1,4,9,5,3,3,5,9,4,1,0,1,4,9,5,3,3,5,9,4] _ f2=[0.6,0.6] _ -> f2x3",
      "mode='cubic' antialias=1"},
     {2.83694601, 7.61265326, 2.98474097, 1.47538579, 5.52565289, 5.67880154}},
    {{"Resize@19",
      "f5x7@[1,4,9,5,3,3,5,9,4,1,0,1,4,9,5,3,3,5,9,4,1,0,1,4,9,5,3,3,5,9,4,1,0,1,4] _ f2=[0.4,0.7] "
      "_ -> f2x4",
      "mode='linear' antialias=1"},
     {4.34206915, 4.2459259, 3.62451601, 3.55999994, 3.78206897, 4.13925934, 4.25935507,
      3.03999996}},
    {{"Resize@19", "f4x4@[1,4,9,5,3,3,5,9,4,1,0,1,4,9,5,3] _ f2=[1.5,0.8] _ -> f6x3",
      "mode='cubic' exclude_outside=1 cubic_coeff_a=-0.5"},
     {1.09078133, 6.29562807, 6.40763187, 1.99923253, 5.08036518, 7.5260396, 3.17604613, 2.89962173,
      6.97435379, 3.65464664, 0.292110413, 1.34886897, 4.16172361, 4.27303553, 1.72135103,
      4.47031164, 8.5765934, 3.66750813}},
    {{"Resize@19", "f4x4@[1,4,9,5,3,3,5,9,4,1,0,1,4,9,5,3] _ f2=[2.3,0.7] _ -> f9x2",
      "mode='linear' coordinate_transformation_mode='half_pixel_symmetric'"},
     {3.35714293, 8.14285755, 3.28726697, 7.69565201, 3.13198757, 6.70186329, 2.91149068, 5.4891305,
      2.32142854, 3.03571439, 1.73136652, 0.5822981, 3.96583867, 1.8245343, 6.69875813, 3.71894431,
      7.92857122, 4.57142878}},
    {{"Resize@19",
      "f4x5@[1,4,9,5,3,3,5,9,4,1,0,1,4,9,5,3,3,5,9,4] f4=[0.4,0.6,1.2,1.7] _ i2=[3,3] -> f3x3",
      "mode='linear' coordinate_transformation_mode='tf_crop_and_resize' extrapolation_value=10.0"},
     {6.79999971, 10, 10, 6.24000072, 10, 10, 10, 10, 10}},
    {{"Resize@19", "f4x4@[1,4,9,5,3,3,5,9,4,1,0,1,4,9,5,3] _ _ i2=[7,3] -> f7x3", "mode='nearest'"},
     {1, 4, 5, 1, 4, 5, 3, 3, 9, 3, 3, 9, 4, 1, 1, 4, 9, 3, 4, 9, 3}},
    {{"Resize@19", "f4x4@[1,4,9,5,3,3,5,9,4,1,0,1,4,9,5,3] _ _ i2=[7,3] -> f7x3",
      "mode='nearest' nearest_mode='round_prefer_ceil' "
      "coordinate_transformation_mode='align_corners'"},
     {1, 9, 5, 3, 5, 9, 3, 5, 9, 4, 0, 1, 4, 0, 1, 4, 5, 3, 4, 5, 3}},
    {{"Resize@19", "f4x6@[1,4,9,5,3,3,5,9,4,1,0,1,4,9,5,3,3,5,9,4,1,0,1,4] _ _ i2=[7,8] -> f5x8",
      "mode='linear' keep_aspect_ratio_policy='not_larger'"},
     {1,     2.875,    5.875,    8.5,      5.5,      3.75,     3,        3,
      3.5,   5.765625, 6.65625,  5.453125, 2.921875, 1.640625, 1.359375, 1.75,
      4.625, 7.359375, 7.265625, 4.046875, 2.078125, 1.359375, 1.640625, 2.5,
      4.625, 6.96875,  6.921875, 4.265625, 2.859375, 2.703125, 3.546875, 4.875,
      8.375, 6.03125,  3.453125, 1.359375, 0.515625, 0.921875, 2.328125, 4.125}},
};

TEST_CASE("resize: values equal those of ONNX's reference implementation") {
  const auto backend = MakeCpuBackend(2);
  for (const Row& row : kRows) {
    CAPTURE(row.op.operands);
    CAPTURE(row.op.attributes);
    const reference::OpCase parsed = ParseCase(row.op);
    std::vector<reference::Tensor> inputs;
    for (size_t i = 0; i < parsed.spec.inputs.size(); ++i) {
      const Operand& operand = parsed.spec.inputs[i];
      inputs.push_back({operand.is_present, operand.type, operand.dims, parsed.contents[i].values});
    }
    const auto op = backend->Prepare(parsed.spec);
    const reference::ForwardResult forward = RunForward(*backend, **op, parsed.spec, inputs, 0);
    const std::vector<double> values =
        reference::FromBytes(forward.outputs[0], parsed.spec.outputs[0]).values;
    REQUIRE(values.size() == row.expected.size());
    for (size_t i = 0; i < values.size(); ++i) {
      CAPTURE(i);
      CHECK(values[i] == doctest::Approx(row.expected[i]).epsilon(1e-5));
    }
  }
}

}  // namespace

}  // namespace ckplan::cpu
