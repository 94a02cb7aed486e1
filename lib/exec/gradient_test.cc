// Gradients of whole networks against differences of the loss.
#include <cmath>

#include "lib/exec/test_backend.h"
#include "lib/exec/testing.h"

namespace ckplan {
namespace {

std::string Listed(const std::vector<double>& values) {
  std::string text;
  for (const double value : values) text += (text.empty() ? "" : ", ") + std::to_string(value);
  return "{" + text + "}";
}

// The loss of `graph`, in which "@" stands for the list of the weight's values. It is linear in the
// outputs.
double LossAt(Backend& backend, std::string graph, const std::vector<double>& weight,
              std::vector<float>* gradient) {
  graph.replace(graph.find('@'), 1, Listed(weight));
  SmallStep small(backend, {graph});
  const double loss = small.Run(small.KeepAll(), LossKind::kGiven);
  REQUIRE(small.constants().trained().size() == 1);
  if (gradient != nullptr) {
    *gradient = small.constants().DownloadGradient(small.constants().trained().front());
  }
  return loss;
}

void CheckGradient(const std::string& graph, std::vector<double> weight) {
  const auto backend = MakeTestBackend();
  std::vector<float> gradient;
  LossAt(*backend, graph, weight, &gradient);
  REQUIRE(gradient.size() == weight.size());
  constexpr double kStep = 0.01;
  for (size_t i = 0; i < weight.size(); ++i) {
    CAPTURE(i);
    const double middle = weight[i];
    weight[i] = middle + kStep;
    const double above = LossAt(*backend, graph, weight, nullptr);
    weight[i] = middle - kStep;
    const double below = LossAt(*backend, graph, weight, nullptr);
    weight[i] = middle;
    CHECK(static_cast<double>(gradient[i]) ==
          doctest::Approx((above - below) / (2 * kStep)).epsilon(0.01).scale(0.1));
  }
}

}  // namespace

TEST_CASE("gradient: a weight that is used twice, once transposed") {
  CheckGradient(
      "g (float[4,3] x) => (float[4,3] y) <float[3,2] w = @> "
      "{ h = MatMul(x, w) t = Tanh(h) wt = Transpose<perm = [1,0]>(w) y = MatMul(t, wt) }",
      {0.5, -0.25, 0.75, 0.125, -0.5, 0.3});
}

TEST_CASE("gradient: a weight behind arithmetic of its own") {
  CheckGradient(
      "g (float[4,3] x) => (float[4,2] y) <float[3,2] w = @> "
      "{ s = Sigmoid(w) v = Mul(s, w) y = MatMul(x, v) }",
      {0.5, -0.25, 0.75, 0.125, -0.5, 0.3});
}

TEST_CASE("gradient: one weight as weight and as shift") {
  CheckGradient(
      "g (float[3,3] x) => (float[3,3] y) <float[3,3] w = @> "
      "{ h = MatMul(x, w) a = Add(h, w) y = Tanh(a) }",
      {0.5, -0.25, 0.75, 0.125, -0.5, 0.3, 0.1, 0.2, -0.4});
}

TEST_CASE("gradient: a tensor that three nodes read") {
  CheckGradient(
      "g (float[3,3] x) => (float[3,3] y) <float[3,3] w = @> "
      "{ h = MatMul(x, w) a = Sigmoid(h) b = Mul(h, a) c = Sub(b, h) y = Add(c, a) }",
      {0.5, -0.25, 0.75, 0.125, -0.5, 0.3, 0.1, 0.2, -0.4});
}

}  // namespace ckplan
