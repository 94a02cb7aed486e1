// Tests of random operators, which have no reference. Their output must have the specified
// distribution and be equal for equal seeds. Dropout must drop the same elements of values and
// gradients.
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "lib/executor/testing/check_run.h"
#include "lib/executor/testing/op_case.h"
#include "lib/problem/ops/op_table.h"

namespace ckplan::reference {

// An operator whose inputs each repeat one value.
struct DrawnOp {
  OpSpec spec;
  std::unique_ptr<Backend> backend;
  std::unique_ptr<PreparedOp> op;
  std::vector<Tensor> inputs;
};

// Every present input repeats `value`.
inline DrawnOp DrawnFrom(std::unique_ptr<Backend> backend, const CaseRow& row, double value) {
  DrawnOp drawn;
  drawn.backend = std::move(backend);
  const OpCase parsed = ParseCase(row);
  drawn.spec = parsed.spec;
  std::vector<bool> needs_gradient, constant;
  for (size_t i = 0; i < drawn.spec.inputs.size(); ++i) {
    const Operand& operand = drawn.spec.inputs[i];
    needs_gradient.push_back(IsDifferentiable(drawn.spec, i));
    constant.push_back(parsed.contents[i].is_constant);
    const auto count = static_cast<size_t>(operand.elements());
    drawn.inputs.push_back({operand.is_present, operand.type, operand.dims,
                            std::vector<double>(operand.is_present ? count : 0, value)});
  }
  SetGradientRoles(drawn.spec, needs_gradient, constant,
                   std::vector<bool>(drawn.spec.outputs.size(), true));
  drawn.op = std::move(drawn.backend->Prepare(drawn.spec).value());
  return drawn;
}

inline ForwardResult DrawForward(DrawnOp& drawn, uint64_t seed, int64_t in_place = -1) {
  ForwardResult result =
      RunForward(*drawn.backend, *drawn.op, drawn.spec, drawn.inputs, seed, -1, in_place);
  CHECK(result.faults.empty());
  return result;
}

inline std::vector<double> ValuesOf(const DrawnOp& drawn, const ForwardResult& result,
                                    size_t output = 0) {
  return FromBytes(result.outputs[output], drawn.spec.outputs[output]).values;
}

struct DrawnMoments {
  double mean = 0, deviation = 0;
};
inline DrawnMoments MomentsOf(const std::vector<double>& values) {
  DrawnMoments moments;
  const auto count = static_cast<double>(values.size());
  for (const double value : values) moments.mean += value / count;
  for (const double value : values) {
    moments.deviation += (value - moments.mean) * (value - moments.mean) / count;
  }
  moments.deviation = std::sqrt(moments.deviation);
  return moments;
}

using MakeBackend = std::unique_ptr<Backend> (*)();

inline void CheckDropoutRatio(MakeBackend make) {
  const CaseRow rows[] = {
      {"Dropout", "f40001 fs=[0.25] -> f40001 b40001"},
      {"Dropout", "f40001 fs=[0.25] bs=[0] -> f40001 b40001"},
      {"Dropout@10", "f40001 -> f40001 b40001", "ratio=0.25"},
      {"Dropout@7", "f40001 -> f40001 f40001", "ratio=0.25"},
  };
  for (const CaseRow& row : rows) {
    CAPTURE(row.attributes);
    DrawnOp drawn = DrawnFrom(make(), row, 3);
    const ForwardResult forward = DrawForward(drawn, 7);
    const std::vector<double> values = ValuesOf(drawn, forward);
    const std::vector<double> mask = ValuesOf(drawn, forward, 1);
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
        FromBytes(backward.gradients[0], drawn.spec.inputs[0]).values;
    for (size_t i = 0; i < values.size(); ++i) wrong += gradient[i] != (mask[i] != 0 ? 8.0 : 0.0);
    CHECK(wrong == 0);
  }
}

inline void CheckDropoutSeed(MakeBackend make) {
  DrawnOp drawn = DrawnFrom(make(), {"Dropout", "f40001 fs=[0.5] -> f40001"}, 1);
  const ForwardResult first = DrawForward(drawn, 7);
  CHECK(DrawForward(drawn, 7).outputs == first.outputs);
  CHECK(DrawForward(drawn, 7, 0).outputs[0] == first.outputs[0]);
  CHECK(DrawForward(drawn, 8).outputs != first.outputs);
}

inline void CheckDropoutExtremes(MakeBackend make) {
  DrawnOp all = DrawnFrom(make(), {"Dropout", "f999 fs=[1] -> f999"}, 1);
  CHECK(ValuesOf(all, DrawForward(all, 7)) == std::vector<double>(999, 0.0));
  DrawnOp none = DrawnFrom(make(), {"Dropout", "f999 fs=[0] -> f999"}, 1);
  CHECK(ValuesOf(none, DrawForward(none, 7)) == std::vector<double>(999, 1.0));
}

inline void CheckDistributions(MakeBackend make) {
  struct Row {
    CaseRow op;
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
    DrawnOp drawn = DrawnFrom(make(), row.op, 0.3);
    const ForwardResult first = DrawForward(drawn, 11);
    const std::vector<double> values = ValuesOf(drawn, first);
    const DrawnMoments moments = MomentsOf(values);
    CHECK(std::abs(moments.mean - row.mean) < 0.03 * row.deviation);
    CHECK(moments.deviation == doctest::Approx(row.deviation).epsilon(0.02));
    int64_t outside = 0;
    for (const double value : values) outside += value < row.low || value >= row.high;
    CHECK(outside == 0);
    CHECK(DrawForward(drawn, 11).outputs == first.outputs);
    CHECK(DrawForward(drawn, 12).outputs != first.outputs);
  }
}

}  // namespace ckplan::reference
