#include "lib/exec/loss.h"

#include "lib/cpu/cpu_backend.h"
#include "lib/exec/seeded.h"
#include "lib/exec/testing.h"

namespace ckplan {
namespace {

Operand Scores(std::vector<int64_t> dims) {
  Operand operand;
  operand.is_present = true;
  operand.dims = std::move(dims);
  return operand;
}

void CheckCrossEntropy(const std::vector<int64_t>& dims) {
  const auto backend = cpu::MakeCpuBackend(1);
  const Operand scores = Scores(dims);
  std::vector<float> values = UniformFloats(5, scores.elements(), -1, 1);
  std::vector<float> gradient(values.size());
  const Loss loss(LossKind::kCrossEntropy, 9);
  const auto run = [&](std::vector<float>& into) {
    return loss.Run(*backend, "y", scores, values.data(), into.data());
  };
  CHECK(run(gradient) > 0);
  std::vector<float> ignored(values.size());
  constexpr float kStep = 1.0F / 128;
  for (size_t i = 0; i < values.size(); ++i) {
    const float middle = values[i];
    values[i] = middle + kStep;
    const double above = run(ignored);
    values[i] = middle - kStep;
    const double below = run(ignored);
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

TEST_CASE("loss: where the classes are") {
  CHECK(ClassAxis({10}) == 0);
  CHECK(ClassAxis({8, 10}) == 1);
  CHECK(ClassAxis({8, 10, 32, 32}) == 1);
  CHECK(ClassAxis({8, 128, 30522}) == 2);
}

TEST_CASE("loss: a given gradient is the same for the same seed and name alone") {
  const auto backend = cpu::MakeCpuBackend(1);
  const Operand scores = Scores({3, 4});
  const std::vector<float> values = UniformFloats(5, 12, -1, 1);
  const auto gradient = [&](uint64_t seed, std::string_view name) {
    std::vector<float> given(values.size());
    Loss(LossKind::kGiven, seed).Run(*backend, name, scores, values.data(), given.data());
    return given;
  };
  CHECK(gradient(1, "y") == gradient(1, "y"));
  CHECK(gradient(1, "y") != gradient(2, "y"));
  CHECK(gradient(1, "y") != gradient(1, "z"));
}

}  // namespace ckplan
