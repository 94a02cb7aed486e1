// Random operators have no reference. Their output must have the specified distribution and be
// equal for equal seeds. Dropout must drop the same elements of the gradient as of the values.
#include <doctest/doctest.h>

#include <cmath>

#include "lib/cpu/cpu_backend.h"
#include "lib/ops/counter_rng.h"
#include "lib/ops/op_rules.h"
#include "lib/reference/check_run.h"
#include "lib/reference/gradient_roles.h"
#include "lib/reference/op_case.h"

namespace ckplan::cpu {
namespace {

using reference::BackwardResult;
using reference::ForwardResult;
using reference::Tensor;

// An operator with inputs that each hold one repeated value.
struct Drawn {
  OpSpec spec;
  std::unique_ptr<Backend> backend = MakeCpuBackend(2);
  std::unique_ptr<PreparedOp> op;
  std::vector<Tensor> inputs;
};

Drawn Prepare(const reference::CaseRow& row, double value) {
  Drawn drawn;
  const reference::OpCase parsed = ParseCase(row);
  drawn.spec = parsed.spec;
  std::vector<bool> wants, constant;
  for (size_t i = 0; i < drawn.spec.inputs.size(); ++i) {
    const Operand& operand = drawn.spec.inputs[i];
    wants.push_back(IsDifferentiable(drawn.spec, i));
    constant.push_back(parsed.contents[i].is_constant);
    const auto count = static_cast<size_t>(operand.elements());
    drawn.inputs.push_back({operand.is_present, operand.type, operand.dims,
                            std::vector<double>(operand.is_present ? count : 0, value)});
  }
  reference::SetGradientRoles(drawn.spec, wants, constant,
                              std::vector<bool>(drawn.spec.outputs.size(), true));
  drawn.op = std::move(drawn.backend->Prepare(drawn.spec).value());
  return drawn;
}

ForwardResult Forward(Drawn& drawn, uint64_t seed, int64_t in_place = -1) {
  ForwardResult result =
      RunForward(*drawn.backend, *drawn.op, drawn.spec, drawn.inputs, seed, -1, in_place);
  CHECK(result.faults.empty());
  return result;
}

std::vector<double> Values(const Drawn& drawn, const ForwardResult& result, size_t output = 0) {
  return reference::FromBytes(result.outputs[output], drawn.spec.outputs[output]).values;
}

struct Moments {
  double mean = 0, deviation = 0;
};
Moments MomentsOf(const std::vector<double>& values) {
  Moments moments;
  const auto count = static_cast<double>(values.size());
  for (const double value : values) moments.mean += value / count;
  for (const double value : values) {
    moments.deviation += (value - moments.mean) * (value - moments.mean) / count;
  }
  moments.deviation = std::sqrt(moments.deviation);
  return moments;
}

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
  const reference::CaseRow rows[] = {
      {"Dropout", "f40001 fs=[0.25] -> f40001 b40001"},
      {"Dropout", "f40001 fs=[0.25] bs=[0] -> f40001 b40001"},
      {"Dropout@10", "f40001 -> f40001 b40001", "ratio=0.25"},
      {"Dropout@7", "f40001 -> f40001 f40001", "ratio=0.25"},
  };
  for (const reference::CaseRow& row : rows) {
    CAPTURE(row.attributes);
    Drawn drawn = Prepare(row, 3);
    const ForwardResult forward = Forward(drawn, 7);
    const std::vector<double> values = Values(drawn, forward);
    const std::vector<double> mask = Values(drawn, forward, 1);
    int64_t wrong = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      wrong += values[i] != 4 * mask[i] || (mask[i] != 0 && mask[i] != 1);
    }
    CHECK(wrong == 0);
    CHECK(MomentsOf(mask).mean == doctest::Approx(0.75).epsilon(0.01));

    Tensor arriving{true, ElementType::kFloat32, {40001}, std::vector<double>(40001, 6)};
    const BackwardResult backward = RunBackward(*drawn.backend, *drawn.op, drawn.spec, drawn.inputs,
                                                forward, {arriving, Tensor()}, 7);
    CHECK(backward.faults.empty());
    const std::vector<double> gradient =
        reference::FromBytes(backward.gradients[0], drawn.spec.inputs[0]).values;
    for (size_t i = 0; i < values.size(); ++i) wrong += gradient[i] != (mask[i] != 0 ? 8.0 : 0.0);
    CHECK(wrong == 0);
  }
}

TEST_CASE("dropout: only the seed decides what is dropped, also in place") {
  Drawn drawn = Prepare({"Dropout", "f40001 fs=[0.5] -> f40001"}, 1);
  const ForwardResult first = Forward(drawn, 7);
  CHECK(Forward(drawn, 7).outputs == first.outputs);
  CHECK(Forward(drawn, 7, 0).outputs[0] == first.outputs[0]);
  CHECK(Forward(drawn, 8).outputs != first.outputs);
}

TEST_CASE("dropout: ratios that drop everything and nothing") {
  Drawn all = Prepare({"Dropout", "f999 fs=[1] -> f999"}, 1);
  CHECK(Values(all, Forward(all, 7)) == std::vector<double>(999, 0.0));
  Drawn none = Prepare({"Dropout", "f999 fs=[0] -> f999"}, 1);
  CHECK(Values(none, Forward(none, 7)) == std::vector<double>(999, 1.0));
}

TEST_CASE("random tensors: means, deviations and bounds are right, and the seed decides") {
  struct Row {
    reference::CaseRow op;
    double mean, deviation, low, high;
  };
  const Row rows[] = {
      {{"RandomUniform", "-> f40001"}, 0.5, 0.2887, 0, 1},
      {{"RandomUniformLike", "f40001 -> f40001", "low=-1.0 high=3.0"}, 1, 1.1547, -1, 3},
      {{"RandomNormal", "-> f40001"}, 0, 1, -7, 7},
      {{"RandomNormalLike", "f40001 -> f40001", "mean=5.0 scale=0.5"}, 5, 0.5, 1.5, 8.5},
      {{"Bernoulli", "f40001 -> f40001"}, 0.3, 0.4583, 0, 1.5},
      {{"Bernoulli", "f40001 -> b40001"}, 0.3, 0.4583, 0, 1.5},
      {{"Bernoulli", "f40001 -> i40001"}, 0.3, 0.4583, 0, 1.5},
  };
  for (const Row& row : rows) {
    CAPTURE(row.op.type);
    Drawn drawn = Prepare(row.op, 0.3);
    const ForwardResult first = Forward(drawn, 11);
    const std::vector<double> values = Values(drawn, first);
    const Moments moments = MomentsOf(values);
    CHECK(std::abs(moments.mean - row.mean) < 0.03 * row.deviation);
    CHECK(moments.deviation == doctest::Approx(row.deviation).epsilon(0.02));
    int64_t outside = 0;
    for (const double value : values) outside += value < row.low || value >= row.high;
    CHECK(outside == 0);
    CHECK(Forward(drawn, 11).outputs == first.outputs);
    CHECK(Forward(drawn, 12).outputs != first.outputs);
  }
}

}  // namespace
}  // namespace ckplan::cpu
