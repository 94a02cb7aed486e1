// Tests that plans in any order (lib/problem/schedule/schedule.h) compute the same gradients,
// bit for bit.
#include "lib/executor/core/testing/steps.h"
#include "lib/testing/random_schedule.h"

namespace ckplan {
namespace {

// One head applied at three scales, as in a detector: the gradients of its weights have three
// contributions each.
NetText SharedHead() {
  return {
      "g (float[N,2,8,8] x) => (float[N,3] y) {"
      "  s1 = Conv<pads = [1,1,1,1]>(x, w1)"
      "  s2 = AveragePool<kernel_shape = [2,2], strides = [2,2]>(s1)"
      "  s3 = AveragePool<kernel_shape = [2,2], strides = [2,2]>(s2)"
      "  h1 = Conv(s1, w, b)"
      "  h2 = Conv(s2, w, b)"
      "  h3 = Conv(s3, w, b)"
      "  t1 = Tanh(h1)"
      "  t2 = Tanh(h2)"
      "  t3 = Tanh(h3)"
      "  p1 = GlobalAveragePool(t1)"
      "  p2 = GlobalAveragePool(t2)"
      "  p3 = GlobalAveragePool(t3)"
      "  p = Sum(p1, p2, p3)"
      "  y = Flatten(p)"
      "}",
      {{"w1", {4, 2, 3, 3}}, {"w", {3, 4, 1, 1}}, {"b", {3}}}};
}

// Branches from one tensor, as in Inception. Its gradient has four contributions, two of which pass
// through. The net also has a sum and a product of the same two tensors.
NetText Branches() {
  return {
      "g (float[N,4,6,6] x) => (float[N,16,6,6] y) {"
      "  a = Conv(x, w1)"
      "  r = Relu(a)"
      "  b1 = Conv(r, w2)"
      "  b2 = Conv<pads = [1,1,1,1]>(r, w3)"
      "  b3 = MaxPool<kernel_shape = [3,3], pads = [1,1,1,1]>(r)"
      "  s = Add(b1, r)"
      "  u = Add(s, b2)"
      "  v = Add(b2, b3)"
      "  m = Mul(b2, b3)"
      "  k = Sigmoid(m)"
      "  y = Concat<axis = 1>(s, u, v, k)"
      "}",
      {{"w1", {4, 4, 1, 1}}, {"w2", {4, 4, 1, 1}}, {"w3", {4, 4, 3, 3}}}};
}

// A U-Net of two levels: tensors of the contracting path wait for the expanding path.
NetText SmallUnet() {
  return {
      "g (float[N,2,8,8] x) => (float[N,1,8,8] y) {"
      "  d1 = Conv<pads = [1,1,1,1]>(x, w1)"
      "  e1 = Relu(d1)"
      "  q = MaxPool<kernel_shape = [2,2], strides = [2,2]>(e1)"
      "  d2 = Conv<pads = [1,1,1,1]>(q, w2)"
      "  e2 = Relu(d2)"
      "  up = ConvTranspose<kernel_shape = [2,2], strides = [2,2]>(e2, w3)"
      "  c = Concat<axis = 1>(e1, up)"
      "  d3 = Conv<pads = [1,1,1,1]>(c, w4)"
      "  e3 = Relu(d3)"
      "  y = Conv(e3, w5)"
      "}",
      {{"w1", {4, 2, 3, 3}},
       {"w2", {8, 4, 3, 3}},
       {"w3", {8, 4, 2, 2}},
       {"w4", {4, 8, 3, 3}},
       {"w5", {1, 4, 1, 1}}}};
}

void CheckRandomOrders(const NetText& net, ActivationType type, Backend& backend) {
  SmallStep small(backend, net, 2, type);
  const PlacedProgram keep_all = small.KeepAll();
  for (uint64_t seed = 1; seed <= 25; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    const PlacedProgram plan = small.RandomOrder(rng, static_cast<int>(rng.Between(0, 20)));
    const ValidationReport report = small.Validate(keep_all, plan);
    for (const Error& failure : report.failures) FAIL_CHECK(failure.message);
    CHECK(report.differences.empty());
    CHECK(report.plan.arena_peak.total == plan.predicted_peak);
    CHECK(report.plan.counted_peak.total == plan.predicted_peak);
    CHECK(report.plan.loss == report.keep_all.loss);
  }
}

}  // namespace

TEST_CASE("order: random orders compute the same gradients in the predicted memory") {
  const auto backend = MakeTestBackend();
  for (const ActivationType type : StoredTypes(*backend)) {
    CAPTURE(NameOf(type));
    CheckRandomOrders(SmallNet(), type, *backend);
    CheckRandomOrders(SharedHead(), type, *backend);
    CheckRandomOrders(Branches(), type, *backend);
    CheckRandomOrders(SmallUnet(), type, *backend);
  }
}

TEST_CASE("order: the graph of a step says which nodes train the same parameters") {
  const auto backend = MakeTestBackend();
  const SmallStep small(*backend, SharedHead(), 2);
  std::vector<std::string> sharing;
  for (const Node& node : small.step().graph.nodes()) {
    if (!node.shared_parameters.empty()) sharing.push_back(node.name);
  }
  CHECK(sharing.size() == 3);
}

TEST_CASE("order: adding a parameter's contributions in another order gives other bits") {
  // This is why nodes that share a parameter run in a fixed order: without it, some valid order
  // adds three contributions in another sequence, and their sum differs.
  const auto backend = MakeTestBackend();
  SmallStep small(*backend, SharedHead(), 2);
  SizedGraph run = small.Graph();
  TensorGraphParts parts = PartsOf(run.graph);
  for (Node& node : parts.nodes) node.shared_parameters.clear();
  run.graph = TensorGraph::Create(std::move(parts)).value();
  const PlacedProgram keep_all = small.KeepAll();
  int different = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Rng rng(seed);
    const Schedule schedule = RandomSchedule::Make(rng, run.graph, 0);
    const PlacedProgram plan = PlaceProgram(small.step(), run, schedule);
    different += small.Validate(keep_all, plan).differences.empty() ? 0 : 1;
  }
  CHECK(different > 0);
}

}  // namespace ckplan
