// Compares gradients of whole networks with finite differences of the loss.

#include "lib/executor/core/testing/steps.h"

namespace ckplan {
namespace {

std::string Listed(const std::vector<double>& values) {
  std::string text;
  for (const double value : values) text += (text.empty() ? "" : ", ") + std::to_string(value);
  return "{" + text + "}";
}

// How the model is read.
struct Reading {
  FusedOperators fused = FusedOperators::kNone;
  Autograd autograd = Autograd::kMinimal;
};

// Returns the loss of `net`, in which "@" stands for the list of the weight's values. The loss is
// linear in the outputs.
double LossAt(Backend& backend, NetText net, const std::vector<double>& weight,
              std::vector<float>* gradient, const Reading& reading = {}) {
  net.graph.replace(net.graph.find('@'), 1, Listed(weight));
  SmallStep small(backend, net, 0, ActivationType::kOfModel, reading.fused, reading.autograd);
  const double loss = small.Run(small.KeepAll(), LossKind::kGiven);
  if (gradient == nullptr) return loss;
  for (const ConstantId leaf : small.constants().trained()) {
    if (small.step().constants[leaf].name != "w") continue;
    *gradient = small.constants().DownloadGradient(leaf);
  }
  return loss;
}

void CheckGradient(const NetText& net, std::vector<double> weight, const Reading& reading = {}) {
  const auto backend = MakeTestBackend();
  std::vector<float> gradient;
  LossAt(*backend, net, weight, &gradient, reading);
  REQUIRE(gradient.size() == weight.size());
  constexpr double kStep = 0.01;
  for (size_t i = 0; i < weight.size(); ++i) {
    CAPTURE(i);
    const double middle = weight[i];
    weight[i] = middle + kStep;
    const double above = LossAt(*backend, net, weight, nullptr, reading);
    weight[i] = middle - kStep;
    const double below = LossAt(*backend, net, weight, nullptr, reading);
    weight[i] = middle;
    CHECK(static_cast<double>(gradient[i]) ==
          doctest::Approx((above - below) / (2 * kStep)).epsilon(0.01).scale(0.1));
  }
}

// A weight "w" with a number of elements, and the graph that uses it.
struct WeightRow {
  std::string name;
  size_t elements;
  std::string graph;
  int opset = 20;
};

// Returns values that are at least twice the step of CheckGradient apart and away from kinks.
std::vector<double> Spread(size_t count) {
  std::vector<double> values;
  for (size_t i = 0; i < count; ++i) {
    values.push_back((static_cast<double>(i * 7 % count) + 0.5) / static_cast<double>(count) * 3 -
                     1.45);
  }
  return values;
}

void CheckRow(const WeightRow& row) {
  CAPTURE(row.name);
  CheckGradient({row.graph, {}, row.opset}, Spread(row.elements));
}

// Operators with a statistic or with several outputs, computed from weights alone.
const WeightRow kOverWeights[] = {
    {"BatchNormalization", 12,
     "g (float[4,3] x) => (float[4,3] y) <float[4,3] w = @, float[3] s = {1,0.5,2}, "
     "float[3] b = {0,1,2}, float[3] m = {0,0,0}, float[3] v = {1,1,1}> "
     "{ n = BatchNormalization<training_mode = 0>(w, s, b, m, v) y = Mul(x, n) }"},
    {"BatchNormalization, training, all outputs", 12,
     "g (float[2,2,3] x) => (float[2,2,3] y) <float[2,2,3] w = @, float[2] s = {1,0.5}, "
     "float[2] b = {0,1}, float[2] m = {0,0}, float[2] v = {1,1}> "
     "{ n, m1, v1 = BatchNormalization<training_mode = 1>(w, s, b, m, v) y = Mul(x, n) }"},
    {"LayerNormalization", 12,
     "g (float[3,4] x) => (float[3,4] y) <float[3,4] w = @, float[4] s = {1,0.5,2,1}> "
     "{ n = LayerNormalization(w, s) y = Mul(x, n) }"},
    {"RMSNormalization", 12,
     "g (float[3,4] x) => (float[3,4] y) <float[3,4] w = @, float[4] s = {1,0.5,2,1}> "
     "{ n = RMSNormalization(w, s) y = Mul(x, n) }",
     23},
    {"InstanceNormalization", 12,
     "g (float[1,2,6] x) => (float[1,2,6] y) <float[1,2,6] w = @, float[2] s = {1,0.5}, "
     "float[2] b = {0,1}> { n = InstanceNormalization(w, s, b) y = Mul(x, n) }"},
    {"MeanVarianceNormalization", 12,
     "g (float[1,2,6] x) => (float[1,2,6] y) <float[1,2,6] w = @> "
     "{ n = MeanVarianceNormalization<axes = [2]>(w) y = Mul(x, n) }"},
    {"LpNormalization", 12,
     "g (float[3,4] x) => (float[3,4] y) <float[3,4] w = @> "
     "{ n = LpNormalization(w) y = Mul(x, n) }"},
    {"Softmax", 12,
     "g (float[3,4] x) => (float[3,4] y) <float[3,4] w = @> { n = Softmax(w) y = Mul(x, n) }"},
    {"MaxPool", 12,
     "g (float[1,2,3] x) => (float[1,2,3] y) <float[1,2,6] w = @> "
     "{ n = MaxPool<kernel_shape = [2], strides = [2]>(w) y = Mul(x, n) }"},
    {"MaxPool with its indices", 12,
     "g (float[1,2,3] x) => (float[1,2,3] y) <float[1,2,6] w = @> "
     "{ n, i = MaxPool<kernel_shape = [2], strides = [2]>(w) f = Cast<to = 1>(i) "
     "  a = Mul(x, n) y = Add(a, f) }"},
    {"GlobalMaxPool", 12,
     "g (float[1,2,1] x) => (float[1,2,1] y) <float[1,2,6] w = @> "
     "{ n = GlobalMaxPool(w) y = Mul(x, n) }"},
    {"TopK", 12,
     "g (float[3,2] x) => (float[3,2] y) <float[3,4] w = @, int64[1] k = {2}> "
     "{ n, i = TopK(w, k) y = Mul(x, n) }"},
    {"Split", 12,
     "g (float[3,2] x) => (float[3,2] y) <float[3,4] w = @> "
     "{ a, b = Split<axis = 1, num_outputs = 2>(w) c = Mul(a, b) d = Mul(x, c) y = Mul(d, b) }"},
    {"Dropout with its mask", 12,
     "g (float[3,4] x) => (float[3,4] y) <float[3,4] w = @, float r = {0.3}, bool t = {1}> "
     "{ n, k = Dropout(w, r, t) f = Cast<to = 1>(k) a = Mul(x, n) y = Add(a, f) }"},
    {"LSTM", 12,
     "g (float[6,1,1,2] x) => (float[6,1,1,2] y) <float[6,1,2] w = @, "
     "float[1,8,2] p = {1,2,3,-1,-2,-3,1,0,0,1,1,2,-1,-2,1,1}, "
     "float[1,8,2] r = {1,0,1,0,0,1,0,1,1,1,0,0,1,-1,0,1}> "
     "{ n, h, c = LSTM<hidden_size = 2>(w, p, r) m = Mul(n, h) y = Mul(x, m) }"},
    {"LSTM, its last state alone", 12,
     "g (float[1,1,2] x) => (float[1,1,2] y) <float[6,1,2] w = @, "
     "float[1,8,2] p = {1,2,3,-1,-2,-3,1,0,0,1,1,2,-1,-2,1,1}, "
     "float[1,8,2] r = {1,0,1,0,0,1,0,1,1,1,0,0,1,-1,0,1}> "
     "{ n, h = LSTM<hidden_size = 2>(w, p, r) y = Mul(x, h) }"},
    {"GRU", 12,
     "g (float[6,1,1,2] x) => (float[6,1,1,2] y) <float[6,1,2] w = @, "
     "float[1,6,2] p = {1,2,3,-1,-2,-3,1,0,0,1,1,2}, float[1,6,2] r = {1,0,1,0,0,1,0,1,1,1,0,0}> "
     "{ n = GRU<hidden_size = 2>(w, p, r) y = Mul(x, n) }"},
    {"Attention", 12,
     "g (float[1,2,3,2] x) => (float[1,2,3,2] y) <float[1,2,3,2] w = @> "
     "{ n = Attention(w, w, w) y = Mul(x, n) }",
     23},
    {"SoftmaxCrossEntropyLoss", 12,
     "g (float[3] x) => (float[3] y) <float[3,4] w = @, int64[3] t = {0,3,1}> "
     "{ n, p = SoftmaxCrossEntropyLoss<reduction = \"none\">(w, t) y = Mul(x, n) }"},
    {"a normalised weight normalised again", 12,
     "g (float[3,4] x) => (float[3,4] y) <float[3,4] w = @, float[4] s = {1,0.5,2,1}> "
     "{ n = LayerNormalization(w, s) u = Mul(n, w) m = LayerNormalization(u, s) y = Mul(x, m) }"},
};

// Operators whose first input is a weight and whose second comes from the batch.
const WeightRow kWithBatch[] = {
    {"Conv", 12, "g (float[2,2,3] x) => (float[1,2,4] y) <float[1,2,6] w = @> { y = Conv(w, x) }"},
    {"MatMul", 12, "g (float[4,5] x) => (float[3,5] y) <float[3,4] w = @> { y = MatMul(w, x) }"},
    {"PRelu", 12, "g (float[4] x) => (float[3,4] y) <float[3,4] w = @> { y = PRelu(w, x) }"},
    {"Where", 12,
     "g (float[3,4] x) => (float[3,4] y) <float[3,4] w = @, float z = {0}> "
     "{ c = Greater(x, z) y = Where(c, w, x) }"},
    {"Gather", 12, "g (int64[2] x) => (float[2,4] y) <float[3,4] w = @> { y = Gather(w, x) }"},
    {"Div", 12, "g (float[4] x) => (float[3,4] y) <float[3,4] w = @> { y = Div(w, x) }"},
    {"GRU with a state of the batch", 12,
     "g (float[1,1,2] x) => (float[6,1,1,2] y, float[1,1,2] h) <float[6,1,2] w = @, "
     "float[1,6,2] p = {1,2,3,-1,-2,-3,1,0,0,1,1,2}, float[1,6,2] r = {1,0,1,0,0,1,0,1,1,1,0,0}> "
     "{ y, h = GRU<hidden_size = 2>(w, p, r, , , x) }"},
    {"LSTM with a state of the batch", 12,
     "g (float[1,1,2] x) => (float[1,1,2] y) <float[6,1,2] w = @, "
     "float[1,8,2] p = {1,2,3,-1,-2,-3,1,0,0,1,1,2,-1,-2,1,1}, "
     "float[1,8,2] r = {1,0,1,0,0,1,0,1,1,1,0,0,1,-1,0,1}> "
     "{ n, y = LSTM<hidden_size = 2>(w, p, r, , , x) }"},
    {"Attention", 12,
     "g (float[1,2,3,2] x) => (float[1,2,3,2] y) <float[1,2,3,2] w = @> "
     "{ y = Attention(w, x, x) }",
     23},
    {"SoftmaxCrossEntropyLoss", 12,
     "g (int64[3] x) => (float y) <float[3,4] w = @> { y = SoftmaxCrossEntropyLoss(w, x) }"},
};

// Operators whose second output is read, or whose first output is not.
const WeightRow kOutputs[] = {
    {"MaxPool with its indices", 12,
     "g (float[1,2,6] x) => (float[1,2,3] y) <float[1,2,6] w = @> { u = Add(x, w) "
     "  n, i = MaxPool<kernel_shape = [2], strides = [2]>(u) f = Cast<to = 1>(i) y = Add(n, f) }"},
    {"Dropout with its mask, a float before opset 10", 12,
     "g (float[3,4] x) => (float[3,4] y) <float[3,4] w = @> { u = Add(x, w) "
     "  n, k = Dropout<ratio = 0.3>(u) a = Mul(n, u) y = Add(a, k) }",
     9},
    {"GroupNormalization with a scale for each group, before opset 21", 12,
     "g (float[1,4,3] x) => (float[1,4,3] y) <float[1,4,3] w = @, float[2] s = {0.5,2}, "
     "float[2] b = {0,1}> { u = Add(x, w) "
     "  n = GroupNormalization<num_groups = 2, epsilon = 0.1>(u, s, b) y = Mul(n, n) }",
     18},
    {"MaxPool with indices that nobody reads", 12,
     "g (float[1,2,6] x) => (float[1,2,3] y) <float[1,2,6] w = @> { u = Add(x, w) "
     "  y, i = MaxPool<kernel_shape = [2], strides = [2]>(u) }"},
    {"TopK with its indices", 12,
     "g (float[3,4] x) => (float[3,2] y) <float[3,4] w = @, int64[1] k = {2}> { u = Add(x, w) "
     "  n, i = TopK(u, k) f = Cast<to = 1>(i) y = Add(n, f) }"},
    {"TopK with indices that nobody reads", 12,
     "g (float[3,4] x) => (float[3,2] y) <float[3,4] w = @, int64[1] k = {2}> { u = Add(x, w) "
     "  y, i = TopK(u, k) }"},
    {"Split of which nobody reads a part", 12,
     "g (float[3,4] x) => (float[3,2] y) <float[3,4] w = @> { u = Add(x, w) "
     "  a, b = Split<axis = 1, num_outputs = 2>(u) y = Mul(b, b) }"},
    {"a sequence that is a Split, of which nobody reads a part", 12,
     "g (float[3,4] x) => (float[3,1] y) <float[3,4] w = @, int64[3] n = {1,2,1}, int64 p = {0}, "
     "int64 q = {2}> { u = Add(x, w) s = SplitToSequence<axis = 1>(u, n) "
     "  a = SequenceAt(s, p) b = SequenceAt(s, q) y = Mul(a, b) }"},
    {"LSTM of which nobody reads the states", 12,
     "g (float[6,1,2] x) => (float[1,1,2] y) <float[6,1,2] w = @, "
     "float[1,8,2] p = {1,2,3,-1,-2,-3,1,0,0,1,1,2,-1,-2,1,1}, "
     "float[1,8,2] r = {1,0,1,0,0,1,0,1,1,1,0,0,1,-1,0,1}> { u = Add(x, w) "
     "  n, h, y = LSTM<hidden_size = 2>(u, p, r) }"},
    {"GRU of which nobody reads the states", 12,
     "g (float[6,1,2] x) => (float[1,1,2] y) <float[6,1,2] w = @, "
     "float[1,6,2] p = {1,2,3,-1,-2,-3,1,0,0,1,1,2}, float[1,6,2] r = {1,0,1,0,0,1,0,1,1,1,0,0}> "
     "{ u = Add(x, w) n, y = GRU<hidden_size = 2>(u, p, r) }"},
    {"LayerNormalization with its statistics", 12,
     "g (float[3,4] x) => (float[3,4] y) <float[3,4] w = @, float[4] s = {1,0.5,2,1}> "
     "{ u = Add(x, w) y, m, d = LayerNormalization(u, s) }"},
    {"SoftmaxCrossEntropyLoss of which nobody reads the loss", 12,
     "g (float[3,4] x) => (float[3,4] y) <float[3,4] w = @, int64[3] t = {0,3,1}> "
     "{ u = Add(x, w) n, y = SoftmaxCrossEntropyLoss(u, t) }"},
};

}  // namespace

TEST_CASE("gradient: a weight that is used twice, once transposed") {
  CheckGradient(
      {"g (float[4,3] x) => (float[4,3] y) <float[3,2] w = @> "
       "{ h = MatMul(x, w) t = Tanh(h) wt = Transpose<perm = [1,0]>(w) y = MatMul(t, wt) }"},
      {0.5, -0.25, 0.75, 0.125, -0.5, 0.3});
}

TEST_CASE("gradient: a weight computed from a parameter") {
  CheckGradient({"g (float[4,3] x) => (float[4,2] y) <float[3,2] w = @> "
                 "{ s = Sigmoid(w) v = Mul(s, w) y = MatMul(x, v) }"},
                {0.5, -0.25, 0.75, 0.125, -0.5, 0.3});
}

TEST_CASE("gradient: a weight that is doubled again and again") {
  CheckGradient({"g (float[4,3] x) => (float[4,2] y) <float[3,2] w = @> "
                 "{ a = Add(w, w) b = Mul(a, a) c = Add(b, b) y = MatMul(x, c) }"},
                {0.5, -0.25, 0.75, 0.125, -0.5, 0.3});
}

TEST_CASE("gradient: one parameter is both weight and shift") {
  CheckGradient({"g (float[3,3] x) => (float[3,3] y) <float[3,3] w = @> "
                 "{ h = MatMul(x, w) a = Add(h, w) y = Tanh(a) }"},
                {0.5, -0.25, 0.75, 0.125, -0.5, 0.3, 0.1, 0.2, -0.4});
}

TEST_CASE("gradient: a tensor that three nodes read") {
  CheckGradient({"g (float[3,3] x) => (float[3,3] y) <float[3,3] w = @> "
                 "{ h = MatMul(x, w) a = Sigmoid(h) b = Mul(h, a) c = Sub(b, h) y = Add(c, a) }"},
                {0.5, -0.25, 0.75, 0.125, -0.5, 0.3, 0.1, 0.2, -0.4});
}

TEST_CASE("gradient: operators with a statistic or several outputs, computed from weights alone") {
  for (const WeightRow& row : kOverWeights) CheckRow(row);
}

TEST_CASE("gradient: a weight as the first operand, and the batch as the second") {
  for (const WeightRow& row : kWithBatch) CheckRow(row);
}

TEST_CASE("gradient: operators of which the second output is read, or the first is not") {
  for (const WeightRow& row : kOutputs) CheckRow(row);
}

constexpr const char* kDroppedAttention =
    "g (float[1,2,3,2] x) => (float[1,2,3,2] y) <float[1,2,3,2] w = @, float val_1 = {0.8}, "
    "float p = {0.4}, bool t = {1}> { u = Add(x, w) q = Mul(u, val_1) "
    "h = Transpose<perm = [0,1,3,2]>(u) k = Mul(h, val_1) s = MatMul(q, k) a = Softmax(s) "
    "d = Dropout(a, p, t) y = MatMul(d, u) }";

TEST_CASE("gradient: an attention as one operator that drops probabilities") {
  const auto backend = MakeTestBackend();
  if (backend->name() != "cpu") return;  // Others have no kernel for it.
  NetText net{kDroppedAttention};
  net.graph.replace(net.graph.find('@'), 1, Listed(Spread(12)));
  SmallStep small(*backend, net, 0, ActivationType::kOfModel, FusedOperators::kCaptured,
                  Autograd::kTorchCuda);
  REQUIRE(small.step().nodes.size() == 2);
  CHECK(small.step().nodes[NodeId(1)].spec.Float("dropout", 0) == doctest::Approx(0.4));
  CheckGradient({kDroppedAttention}, Spread(12), {FusedOperators::kCaptured, Autograd::kTorchCuda});
}

constexpr const char* kGate =
    "g (float[2,3,4] x) => (float[2,3,2] y) <float[4,4] w = @, int64[2] halves = {2,2}> "
    "{ h = MatMul(x, w) a, b = Split<axis = 2>(h, halves) s = Sigmoid(a) y = Mul(s, b) }";

TEST_CASE("gradient: a saved part whose rest PyTorch holds is in the arena, and changes no bit") {
  const auto backend = MakeTestBackend();
  NetText net{kGate};
  net.graph.replace(net.graph.find('@'), 1, Listed(Spread(16)));
  SmallStep small(*backend, net, 0, ActivationType::kOfModel, FusedOperators::kCaptured,
                  Autograd::kTorch);
  const auto rest =
      std::find_if(small.step().graph.tensors().begin(), small.step().graph.tensors().end(),
                   [](const Tensor& tensor) { return tensor.name == "h:rest"; });
  REQUIRE(rest != small.step().graph.tensors().end());
  CHECK(rest->bytes == Bytes(2 * 3 * 2 * 4));
  Rng rng(5);
  for (const int percent : {0, 30, 60, 100}) {
    CAPTURE(percent);
    CHECK(small.Validate(small.KeepAll(), small.Random(rng, percent)).failures.empty());
    CHECK(small.Validate(small.KeepAll(), small.RandomMoves(rng, percent)).failures.empty());
  }
  CheckGradient({kGate}, Spread(16), {FusedOperators::kCaptured, Autograd::kTorch});
}

// The loss is linear in what is rounded, so its gradient is that without rounding, to the bit.
TEST_CASE("gradient: rounding passes it straight through, of weights and of activations") {
  const auto gradient_of = [](std::string graph, const std::string& op) {
    graph.replace(graph.find('?'), 1, op);
    const auto backend = MakeTestBackend();
    std::vector<float> gradient;
    LossAt(*backend, {graph}, Spread(6), &gradient);
    return gradient;
  };
  for (const char* const graph :
       {"g (float[4,3] x) => (float[4,2] y) <float[3,2] w = @> { r = ?(w) y = MatMul(x, r) }",
        "g (float[4,3] x) => (float[4,2] y) <float[3,2] w = @, float[2] c = {2,-3}> "
        "{ m = MatMul(x, w) r = ?(m) y = Add(r, c) }"}) {
    CAPTURE(graph);
    const std::vector<float> straight = gradient_of(graph, "Identity");
    REQUIRE(straight.size() == 6);
    for (const char* const op : {"Round", "Sign", "Floor", "Ceil"}) {
      CAPTURE(op);
      CHECK(gradient_of(graph, op) == straight);
    }
  }
}

}  // namespace ckplan
