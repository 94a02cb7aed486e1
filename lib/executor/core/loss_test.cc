#include "lib/executor/core/loss.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "lib/executor/core/constant_store.h"
#include "lib/executor/core/testing/steps.h"
#include "lib/executor/core/train.h"
#include "lib/executor/scalar/step_loss.h"
#include "lib/problem/ops/bfloat16.h"

namespace ckplan {

namespace {

Operand Scores(std::vector<int64_t> dims, ElementType type = ElementType::kFloat32) {
  Operand operand;
  operand.is_present = true;
  operand.type = type;
  operand.dims = std::move(dims);
  return operand;
}

// Returns the loss of these scores and computes its gradient. T is float, or uint16_t for bfloat16.
template <typename T>
double LossOf(Backend& backend, const Loss& loss, std::string_view name, const Operand& scores,
              const std::vector<T>& values, std::vector<T>& gradient) {
  const Bytes bytes(scores.bytes());
  const DeviceBlock from = DeviceBlock::Allocate(backend, bytes).value();
  const DeviceBlock into = DeviceBlock::Allocate(backend, bytes).value();
  backend.Upload(from.get(), values.data(), bytes.count());
  const double value = loss.Run(backend, name, scores, from.get(), into.get());
  gradient.resize(values.size());
  backend.Download(gradient.data(), into.get(), bytes.count());
  return value;
}

void CheckCrossEntropy(const std::vector<int64_t>& dims) {
  const auto backend = MakeTestBackend();
  const Operand scores = Scores(dims);
  std::vector<float> values = UniformFloats(5, scores.elements(), -1, 1);
  std::vector<float> gradient;
  const Loss loss(LossKind::kCrossEntropy, 9);
  CHECK(LossOf(*backend, loss, "y", scores, values, gradient) > 0);
  std::vector<float> ignored;
  constexpr float kStep = 1.0F / 128;
  for (size_t i = 0; i < values.size(); ++i) {
    const float middle = values[i];
    values[i] = middle + kStep;
    const double above = LossOf(*backend, loss, "y", scores, values, ignored);
    values[i] = middle - kStep;
    const double below = LossOf(*backend, loss, "y", scores, values, ignored);
    values[i] = middle;
    CHECK(static_cast<double>(gradient[i]) ==
          doctest::Approx((above - below) / (2.0 * static_cast<double>(kStep))).epsilon(0.001));
  }
}

}  // namespace

TEST_CASE("loss: cross-entropy's gradient is its derivative") {
  CheckCrossEntropy({4, 6});
  CheckCrossEntropy({2, 5, 3, 3});
  CheckCrossEntropy({2, 3, 7});
}

// The outputs have more elements, positions and classes than a sum has parts, and fewer.
TEST_CASE("loss: a device computes the same bits as the host") {
  const auto backend = MakeTestBackend();
  const std::vector<int64_t> kShapes[] = {{1},          {3, 5},     {3, 50000},      {70000, 2},
                                          {2, 5, 3, 7}, {2, 3, 40}, {2, 2, 200, 200}};
  for (const std::vector<int64_t>& dims : kShapes) {
    for (const LossKind kind : {LossKind::kGiven, LossKind::kCrossEntropy}) {
      CAPTURE(dims.front());
      CAPTURE(NameOf(kind));
      const Operand output = Scores(dims);
      const std::vector<float> values = UniformFloats(7, output.elements(), -30, 30);
      std::vector<float> gradient;
      std::vector<float> expected = values;
      const double loss = LossOf(*backend, Loss(kind, 9), "y", output, values, gradient);
      CHECK(loss == LossOnHost(kind, SeedFor(9, "y"), output, expected));
      CHECK(gradient == expected);
    }
  }
}

TEST_CASE("loss: e^x and ln x are those of the C library, almost to the last bit") {
  double worst = 0;
  for (int i = 0; i < 100000; ++i) {
    const double x = -i / 150.0;
    worst = std::max(worst, std::fabs(scalar::ExpOfNegative(x) / std::exp(x) - 1));
    const double y = 1 + i * 3.7;
    if (i > 0) worst = std::max(worst, std::fabs(scalar::LogOf(y) / std::log(y) - 1));
  }
  CHECK(worst < 1e-15);
  CHECK(scalar::ExpOfNegative(-1e30) == 0);
  CHECK(scalar::LogOf(1) == 0);
  CHECK(std::isnan(scalar::ExpOfNegative(NAN)));
  CHECK(std::isnan(scalar::LogOf(NAN)));
}

TEST_CASE("loss: a given gradient is the seed's sequence of numbers") {
  std::vector<float> values(1000, 0.0F);
  LossOnHost(LossKind::kGiven, 9, Scores({10, 100}), values);
  const float bound = 1.0F / std::sqrt(1000.0F);
  CHECK(values == UniformFloats(9, 1000, -bound, bound));
}

TEST_CASE("loss: the axis of the classes") {
  CHECK(ClassAxis({10}) == 0);
  CHECK(ClassAxis({8, 10}) == 1);
  CHECK(ClassAxis({8, 10, 32, 32}) == 1);
  CHECK(ClassAxis({8, 128, 30522}) == 2);
}

TEST_CASE("loss: an output without classes has no cross-entropy, and nothing runs") {
  const auto backend = MakeTestBackend();
  const auto refusal = [&](std::string_view begin, std::string_view end, LossKind kind) {
    const std::string slice = "g (float[3,4] x) => (float[N,M] y) <int64[2] a = {" +
                              std::string(begin) + "}, int64[2] b = {" + std::string(end) +
                              "}> { h = MatMul(x, w) s = Slice(h, a, b) y = Relu(s) }";
    SmallStep small(*backend, {slice, {{"w", {4, 4}}}});
    const Result<Done> judged = RequireLoss(kind, small.step());
    TrainOptions options;
    options.loss = kind;
    const auto trained = Train(*backend, small.step(), small.operators(), small.constants(),
                               small.KeepAll(), options, [](const TrainedStep&) {});
    CHECK(trained.ok() == judged.ok());
    return judged.ok() ? "" : judged.error().message;
  };
  CHECK(refusal("0,0", "3,0", LossKind::kCrossEntropy)
            .starts_with("cross-entropy is undefined for the output \"y\""));
  CHECK(refusal("0,0", "3,0", LossKind::kGiven).empty());
  CHECK(refusal("0,0", "0,4", LossKind::kCrossEntropy).empty());  // The mean is over no positions.
}

TEST_CASE("loss: a given gradient depends only on seed and name") {
  const auto backend = MakeTestBackend();
  const std::vector<float> values = UniformFloats(5, 12, -1, 1);
  const auto gradient = [&](uint64_t seed, std::string_view name) {
    std::vector<float> given;
    LossOf(*backend, Loss(LossKind::kGiven, seed), name, Scores({3, 4}), values, given);
    return given;
  };
  CHECK(gradient(1, "y") == gradient(1, "y"));
  CHECK(gradient(1, "y") != gradient(2, "y"));
  CHECK(gradient(1, "y") != gradient(1, "z"));
}

TEST_CASE("loss: bfloat16 gives the loss of the same numbers in float32, and a rounded gradient") {
  const auto backend = MakeTestBackend();
  const std::vector<uint16_t> narrow = ToBFloat16(UniformFloats(5, 15, -1, 1));
  const std::vector<float> wide = FromBFloat16(narrow);
  const Operand narrow_scores = Scores({3, 5}, ElementType::kBFloat16);
  std::vector<uint16_t> narrow_gradient;
  std::vector<float> wide_gradient;

  const Loss entropy(LossKind::kCrossEntropy, 9);
  const double loss = LossOf(*backend, entropy, "y", Scores({3, 5}), wide, wide_gradient);
  CHECK(LossOf(*backend, entropy, "y", narrow_scores, narrow, narrow_gradient) == loss);
  CHECK(narrow_gradient == ToBFloat16(wide_gradient));

  // The loss is also computed from the rounded gradient.
  const Loss given(LossKind::kGiven, 9);
  LossOf(*backend, given, "y", Scores({3, 5}), wide, wide_gradient);
  const double inner = LossOf(*backend, given, "y", narrow_scores, narrow, narrow_gradient);
  CHECK(narrow_gradient == ToBFloat16(wide_gradient));
  double expected = 0;
  for (size_t i = 0; i < wide.size(); ++i) {
    expected +=
        static_cast<double>(wide[i]) * static_cast<double>(FromBFloat16(narrow_gradient[i]));
  }
  CHECK(inner == expected);
}

TEST_CASE("seeded: a bfloat16 input holds the rounded numbers of the float32 input") {
  StepInput input;
  input.name = "x";
  input.operand.is_present = true;
  input.operand.dims = {7};
  std::vector<float> wide(7);
  std::memcpy(wide.data(), SeededInput(3, input).data(), wide.size() * sizeof(float));
  input.operand.type = ElementType::kBFloat16;
  std::vector<uint16_t> narrow(7);
  const std::vector<std::byte> bytes = SeededInput(3, input);
  REQUIRE(bytes.size() == narrow.size() * sizeof(uint16_t));
  std::memcpy(narrow.data(), bytes.data(), bytes.size());
  CHECK(narrow == ToBFloat16(wide));
}

}  // namespace ckplan
