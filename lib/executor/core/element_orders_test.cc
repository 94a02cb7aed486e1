#include "lib/executor/core/element_orders.h"

#include <algorithm>
#include <string>
#include <vector>

#include "lib/executor/backend/backend.h"
#include "lib/executor/core/testing/steps.h"

namespace ckplan {
namespace {

// Convolutions and what stands between them: a residual connection, a pool, a concatenation, gates
// of one position, and at the end a matrix.
NetText Images() {
  return {
      "g (float[N,3,8,8] x) => (float[N,5] y) {"
      "  a = Conv<pads = [1,1,1,1]>(x, w1, b1)"
      "  b = BatchNormalization(a, s1, t1, m1, v1)"
      "  c = Relu(b)"
      "  d = Conv<pads = [1,1,1,1]>(c, w2)"
      "  e = Add(d, c)"
      "  f = MaxPool<kernel_shape = [2,2], strides = [2,2]>(e)"
      "  g0 = Conv(f, w3)"
      "  h = Concat<axis = 1>(f, g0)"
      "  p = GlobalAveragePool(h)"
      "  q = Sigmoid(p)"
      "  i = Mul(h, q)"
      "  j = Add(i, shift)"
      "  k = Conv(j, w4)"
      "  l = Flatten(k)"
      "  y = MatMul(l, w5)"
      "}",
      {{"w1", {8, 3, 3, 3}},
       {"b1", {8}},
       {"s1", {8}},
       {"t1", {8}},
       {"m1", {8}},
       {"v1", {8}},
       {"w2", {8, 8, 3, 3}},
       {"w3", {16, 8, 1, 1}},
       {"shift", {24, 1, 1}},
       {"w4", {4, 24, 1, 1}},
       {"w5", {64, 5}}}};
}

std::vector<std::string> TensorsWithChannelsLast(const StepGraph& step) {
  std::vector<std::string> names;
  for (const TensorId tensor : step.tensors.ids()) {
    if (!step.tensors[tensor].is_channels_last) continue;
    names.push_back(step.graph.tensor(tensor).name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

TEST_CASE("element orders: a convolution's tensors have their channels last unless one is bound") {
  const auto backend = MakeTestBackend();
  if (!backend->StoresBFloat16()) return;
  const SmallStep wide(*backend, Images(), 2);
  CHECK(TensorsWithChannelsLast(wide.step()).empty());
  const SmallStep half(*backend, Images(), 2, ActivationType::kBFloat16);
  // x comes from the batch, k is read as a matrix, and p and q have one position.
  CHECK(TensorsWithChannelsLast(half.step()) ==
        std::vector<std::string>{"a", "b", "c", "d", "e", "f", "g0", "h", "i", "j"});
}

TEST_CASE("element orders: an operator that needs the model's order binds all that is alike") {
  const auto backend = MakeTestBackend();
  if (!backend->StoresBFloat16()) return;
  // r is summed along an axis; b, c, and e are alike.
  const NetText net{
      "g (float[N,4,6,6] x) => (float[N,4,6,6] y, float[N,1,6,6] z) {"
      "  a = Conv(x, w1)"
      "  b = Relu(a)"
      "  d = Conv(b, w2)"
      "  e = Add(d, mask)"
      "  z = ReduceMax<axes = [1]>(d)"
      "  y = Conv(e, w2)"
      "}",
      {{"w1", {4, 4, 1, 1}}, {"w2", {4, 4, 1, 1}}, {"mask", {4, 6, 6}}},
      12};
  const SmallStep half(*backend, net, 2, ActivationType::kBFloat16);
  CHECK(TensorsWithChannelsLast(half.step()) == std::vector<std::string>{"a", "b"});
}

TEST_CASE("element orders: a constant that lies in the model's order binds what it is added to") {
  const auto backend = MakeTestBackend();
  if (!backend->StoresBFloat16()) return;
  const NetText net{
      "g (float[N,4,6,6] x) => (float[N,4,6,6] y) {"
      "  a = Conv(x, w1)"
      "  b = Add(a, mask)"
      "  c = Conv(b, w2)"
      "  d = Relu(c)"
      "  y = Conv(d, w2)"
      "}",
      {{"w1", {4, 4, 1, 1}}, {"w2", {4, 4, 1, 1}}, {"mask", {4, 6, 6}}}};
  const SmallStep half(*backend, net, 2, ActivationType::kBFloat16);
  CHECK(TensorsWithChannelsLast(half.step()) == std::vector<std::string>{"c", "d"});
}

TEST_CASE("element orders: plans compute the same gradients in the same memory") {
  const auto backend = MakeTestBackend();
  for (const ActivationType type : StoredTypes(*backend)) {
    CAPTURE(NameOf(type));
    SmallStep small(*backend, Images(), 3, type);
    const PlacedProgram keep_all = small.KeepAll();
    for (uint64_t seed = 1; seed <= 8; ++seed) {
      CAPTURE(seed);
      Rng rng(seed);
      const ValidationReport report = small.Validate(
          keep_all, small.Random(rng, static_cast<int>(rng.Between(0, 100))), /*timed_runs=*/1);
      for (const Error& failure : report.failures) FAIL_CHECK(failure.message);
      CHECK(report.differences.empty());
    }
  }
}

// A backend that takes all tensors in the order of the model.
class OrderOfModel final : public ForwardingBackend {
 public:
  OrderOfModel() : ForwardingBackend(MakeTestBackend()) {}
  ElementOrders OrdersOf(const OpSpec&) const override { return ElementOrders::kOfModel; }
};

using Gradients = std::vector<std::vector<float>>;

Gradients GradientsOf(Backend& backend) {
  SmallStep small(backend, Images(), 3, ActivationType::kBFloat16);
  small.Run(small.KeepAll(), LossKind::kGiven);
  Gradients gradients;
  for (const ConstantId leaf : small.constants().trained()) {
    gradients.push_back(small.constants().DownloadGradient(leaf));
  }
  return gradients;
}

TEST_CASE("element orders: channels last compute what the order of the model does") {
  const auto backend = MakeTestBackend();
  if (!backend->StoresBFloat16()) return;
  OrderOfModel plain;
  const Gradients expected = GradientsOf(plain);
  const Gradients found = GradientsOf(*backend);
  REQUIRE(expected.size() == found.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    CAPTURE(i);
    double distance = 0, norm = 0;
    for (size_t k = 0; k < expected[i].size(); ++k) {
      const double a = static_cast<double>(expected[i][k]);
      const double b = static_cast<double>(found[i][k]);
      distance += (a - b) * (a - b);
      norm += a * a;
    }
    // Sums in another order move some roundings to 8 bits. A weight or a gradient in a wrong order
    // is as far away as it is long. The gradient of a bias before a normalisation is 0.
    constexpr double kTolerance = 0.02;
    constexpr double kNothing = 1e-4;
    CHECK(distance <= kTolerance * kTolerance * norm + kNothing);
  }
}

}  // namespace
}  // namespace ckplan
