#include "lib/files/model/restore.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "lib/files/model/origin.h"
#include "lib/files/model/step_graph.h"
#include "lib/files/model/testing/proto.h"
#include "lib/problem/ops/softmax.h"

namespace ckplan {
namespace {

// Node i of the graph gets the origin i, as torch.onnx.export writes it; an empty one is left out.
using Origins = std::vector<std::string>;

void SetOrigins(onnx::ModelProto& proto, const Origins& origins) {
  for (size_t i = 0; i < origins.size(); ++i) {
    if (origins[i].empty()) continue;
    auto& property =
        *proto.mutable_graph()->mutable_node(static_cast<int>(i))->add_metadata_props();
    const std::string name = origins[i].substr(0, origins[i].find(' '));
    const std::string target = origins[i].substr(origins[i].find(' ') + 1);
    property.set_key("pkg.torch.onnx.fx_node");
    property.set_value("%" + name + " : [num_users=1] = call_function[target=torch.ops." + target +
                       "](args = (%x,), kwargs = {})");
  }
}

std::string OperatorsOf(const ModelGraph& lowered) {
  std::string operators;
  for (const Node& node : lowered.graph.nodes()) {
    operators += (operators.empty() ? "" : " ") + node.op;
  }
  return operators;
}

LoadOptions Restored(Autograd autograd = Autograd::kMinimal) {
  LoadOptions options;
  options.restored = RestoredOperators::kCaptured;
  options.autograd = autograd;
  return options;
}

// A graph on x, whose first node multiplies by a weight, so that everything has a gradient.
std::string Graph(const std::string& body, const std::string& constants = "") {
  return "g (float[2,4] x) => (float[2,4] y) <float[4,4] w = {1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7}" +
         constants + "> { h = MatMul(x, w) " + body + " }";
}

std::string OperatorsOf(const std::string& body, const Origins& origins = {},
                        Autograd autograd = Autograd::kMinimal, const std::string& constants = "") {
  onnx::ModelProto proto = ParseGraph(Graph(body, constants));
  Origins all = {"linear aten.linear.default"};
  all.insert(all.end(), origins.begin(), origins.end());
  if (!origins.empty()) SetOrigins(proto, all);
  return OperatorsOf(LowerProto(proto, Restored(autograd), autograd));
}

TEST_CASE("restore: an activation that was one operation is one node") {
  const std::string silu = "s = Sigmoid(h) y = Mul(h, s)";
  const std::string one = "silu aten.silu.default";
  CHECK(OperatorsOf(silu) == "MatMul Swish");
  CHECK(OperatorsOf("s = Sigmoid(h) y = Mul(s, h)") == "MatMul Swish");
  CHECK(OperatorsOf(silu, {one, one}) == "MatMul Swish");
  CHECK(OperatorsOf(silu, {"sigmoid aten.sigmoid.default", "mul aten.mul.Tensor"}) ==
        "MatMul Sigmoid Mul");
  CHECK(OperatorsOf(silu, {"sigmoid aten.sigmoid.default", ""}) == "MatMul Sigmoid Mul");
  CHECK(OperatorsOf("t = Relu(h) s = Sigmoid(t) y = Mul(h, s)") == "MatMul Relu Sigmoid Mul");
  CHECK(OperatorsOf("s = Sigmoid(h) p = Mul(h, s) y = Add(p, s)") == "MatMul Sigmoid Mul Add");
  CHECK(OperatorsOf("s = HardSigmoid<alpha = 0.16666667, beta = 0.5>(h) y = Mul(h, s)") ==
        "MatMul HardSwish");
  CHECK(OperatorsOf("s = HardSigmoid(h) y = Mul(h, s)") == "MatMul HardSigmoid Mul");
  CHECK(OperatorsOf("a = Softplus(h) b = Tanh(a) y = Mul(h, b)") == "MatMul Mish");
}

TEST_CASE("restore: the error function of GELU is a Gelu, in any order of its factors") {
  const std::string constants =
      ", float root_const = {1.41421356}, float inverse_const = {0.70710678}, float one_const = "
      "{1}, float half_const = "
      "{0.5}, float two_const = {2}";
  const auto operators = [&constants](const std::string& body) {
    return OperatorsOf(body, {}, Autograd::kMinimal, constants);
  };
  const std::string erf = "u = Div(h, root_const) e = Erf(u) a = Add(e, one_const) ";
  CHECK(operators(erf + "p = Mul(h, a) y = Mul(p, half_const)") == "MatMul Gelu");
  CHECK(operators(erf + "p = Mul(h, half_const) y = Mul(p, a)") == "MatMul Gelu");
  CHECK(operators(erf + "p = Mul(a, half_const) y = Mul(h, p)") == "MatMul Gelu");
  CHECK(operators(erf + "p = Mul(a, h) y = Div(p, two_const)") == "MatMul Gelu");
  CHECK(operators("u = Mul(h, inverse_const) e = Erf(u) a = Add(one_const, e) p = Mul(a, h) y = "
                  "Mul(half_const, p)") == "MatMul Gelu");
  CHECK(operators(erf + "y = Mul(h, a)") == "MatMul Div Erf Add Mul");
  CHECK(operators("u = Div(h, two_const) e = Erf(u) a = Add(e, one_const) p = Mul(h, a) y = Mul(p, "
                  "half_const)") == "MatMul Div Erf Add Mul Mul");
}

TEST_CASE("restore: an ELU loses its scales of 1, and a clamp is a Clip") {
  const std::string constants = ", float one_const = {1}, float two_const = {2}";
  const std::string elu = "elu aten.elu.default", clamp = "clamp aten.clamp.default";
  const auto operators = [&constants](const std::string& body, const Origins& origins) {
    return OperatorsOf(body, origins, Autograd::kMinimal, constants);
  };
  const std::string scaled = "a = Mul(h, one_const) b = Elu(a) y = Mul(b, one_const)";
  CHECK(operators(scaled, {elu, elu, elu}) == "MatMul Elu");
  CHECK(operators(scaled, {}) == "MatMul Elu");
  CHECK(operators(scaled, {"mul aten.mul.Tensor", elu, elu}) == "MatMul Mul Elu Mul");
  CHECK(operators("a = Mul(h, one_const) b = Elu(a) y = Mul(b, two_const)", {elu, elu, elu}) ==
        "MatMul Mul Elu Mul");
  const std::string both = "a = Max(h, one_const) y = Min(a, two_const)";
  CHECK(operators(both, {clamp, clamp}) == "MatMul Clip");
  CHECK(operators("y = Max(h, one_const)", {clamp}) == "MatMul Clip");
  CHECK(operators("y = Min(h, one_const)", {"clamp aten.clamp_max.default"}) == "MatMul Clip");
  CHECK(operators(both, {"max aten.maximum.default", "min aten.minimum.default"}) ==
        "MatMul Max Min");
  CHECK(operators(both, {}) == "MatMul Max Min");
}

TEST_CASE("restore: a product with booleans saves them if only the exporter cast them") {
  const std::string body = "m = Greater(h, zero_const) c = Cast<to = 1>(m) y = Mul(c, h)";
  const auto operators = [&body](const std::string& cast, Autograd autograd) {
    return OperatorsOf(body, {"gt aten.gt.Scalar", cast, "mul aten.mul.Tensor"}, autograd,
                       ", float zero_const = {0}");
  };
  const std::string by_exporter = "cast prims.convert_element_type.default";
  CHECK(operators(by_exporter, Autograd::kTorchCuda) == "MatMul Greater Where");
  CHECK(operators(by_exporter, Autograd::kMinimal) == "MatMul Greater Cast Mul");
  CHECK(operators("to aten._to_copy.default", Autograd::kTorchCuda) == "MatMul Greater Cast Mul");
}

TEST_CASE("restore: the gradient of a clamp compares with each bound, unlike that of a ReLU6") {
  const auto workspace = [](const std::string& body, const std::string& target) {
    onnx::ModelProto proto =
        ParseGraph(Graph(body, ", float low_const = {0}, float high_const = {6}"));
    SetOrigins(proto, {"linear aten.linear.default", "clip " + target});
    const auto lowered = LowerProto(proto, Restored(Autograd::kTorchCuda), Autograd::kTorchCuda);
    const IdVector<NodeId, Node>& nodes = lowered.graph.nodes();
    return nodes[NodeId(1)].backward_workspace.count();
  };
  const std::string both = "y = Clip(h, low_const, high_const)";
  CHECK(workspace(both, "aten.clamp.default") == 2 * 8);
  CHECK(workspace("y = Clip(h, low_const)", "aten.clamp_min.default") == 8);
  CHECK(workspace(both, "aten.hardtanh.default") == 0);
}

TEST_CASE("restore: a maximum with indices saves these, and one without saves its input") {
  const auto operators = [](const std::string& attributes, const std::string& target) {
    onnx::ModelProto proto = ParseGraph(
        "g (float[2,4] x) => (float y) <float[4,4] w = {1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7}, int64[1] "
        "axes "
        "= {-1}> { h = MatMul(x, w) m = ReduceMax" +
        attributes + "(h, axes) y = ReduceSum<keepdims = 0>(m) }");
    SetOrigins(proto, {"linear aten.linear.default", "max " + target});
    return LowerProto(proto, Restored(Autograd::kTorchCuda), Autograd::kTorchCuda);
  };
  for (const std::string attributes : {"<keepdims = 0>", "<keepdims = 1>"}) {
    CAPTURE(attributes);
    const ModelGraph chosen = operators(attributes, "aten.max.dim");
    CHECK(OperatorsOf(chosen) == "MatMul TopK ReduceSum");
    const Node& top = chosen.graph.nodes()[NodeId(1)];
    CHECK(top.backward_workspace == Bytes(4 * 8));
    REQUIRE(top.backward_reads.size() == 1);
    CHECK(chosen.graph.tensors()[top.backward_reads[0]].bytes == Bytes(8 * 2));
    const ModelGraph reduced = operators(attributes, "aten.amax.default");
    CHECK(OperatorsOf(reduced) == "MatMul ReduceMax ReduceSum");
    CHECK(reduced.graph.nodes()[NodeId(1)].backward_reads.size() == 2);
  }
}

TEST_CASE("restore: a squared difference that the exporter wrote twice is saved once") {
  const std::string body = "a = Sub(h, x) b = Sub(h, x) y = Mul(a, b)";
  const std::string mse = "mse aten.mse_loss.default";
  CHECK(OperatorsOf(body, {mse, mse, mse}) == "MatMul Sub Mul");
  CHECK(OperatorsOf("a = Sub(h, x) b = Sub(x, h) y = Mul(a, b)", {mse, mse, mse}) ==
        "MatMul Sub Sub Mul");
  CHECK(OperatorsOf(body, {"a aten.sub.Tensor", "b aten.sub.Tensor", "mul aten.mul.Tensor"}) ==
        "MatMul Sub Sub Mul");
}

TEST_CASE("restore: an Identity that was a detach passes no gradient on") {
  const auto sigmoid = [](const std::string& target) {
    onnx::ModelProto proto = ParseGraph(Graph("s = Sigmoid(h) d = Identity(s) y = Mul(h, d)"));
    SetOrigins(proto, {"linear aten.linear.default", "sigmoid aten.sigmoid.default",
                       "detach " + target, "mul aten.mul.Tensor"});
    for (const RestoredOperators restored :
         {RestoredOperators::kCaptured, RestoredOperators::kNone}) {
      LoadOptions options;
      options.restored = restored;
      const ModelGraph lowered = LowerProto(proto, options, Autograd::kTorchCuda);
      const Node& node = lowered.graph.nodes()[NodeId(1)];
      CHECK(node.op == "Sigmoid");
      // Its result is all that the product saves for the gradient of h.
      const Node& product = lowered.graph.nodes()[NodeId(2)];
      CHECK(product.backward_reads.size() == (node.backward_reads.empty() ? 1 : 2));
      if (restored == RestoredOperators::kNone) return node.backward_cost > Cost(0);
    }
    return false;
  };
  CHECK_FALSE(sigmoid("aten.detach.default"));
  CHECK(sigmoid("aten.alias.default"));
}

// The formulas that PyTorch's exporter writes for the losses of each element, l, of scores h and
// targets t.
struct LossRow {
  std::string function;
  std::string formula;
  int64_t workspace;    // In the backward of a mean, counted in tensors.
  int64_t of_elements;  // The same if the loss isn't reduced.
};

const LossRow kLosses[] = {
    {"huber_loss",
     "s = Sub(h, t) z = Abs(s) c = Less(z, d) a = Mul(z, half) b = Mul(a, z) e = Sub(z, eighth) "
     "f = Mul(e, d) l = Where(c, b, f)",
     0, 0},
    {"smooth_l1_loss",
     "s = Sub(h, t) z = Abs(s) c = Less(z, d) p = Pow(z, two) a = Mul(p, half) b = Div(a, d) "
     "e = Sub(z, eighth) l = Where(c, b, e)",
     1, 0},
    {"soft_margin_loss", "n = Neg(h) p = Mul(n, t) e = Exp(p) a = Add(e, one) l = Log(a)", 1, 0},
    {"binary_cross_entropy",
     "m = Sub(t, one) n = Neg(h) a = Add(n, one) b = Log(a) c = Max(b, low) e = Mul(m, c) "
     "f = Log(h) k = Max(f, low) i = Mul(t, k) l = Sub(e, i)",
     1, 0},
    {"binary_cross_entropy_with_logits",
     "m = Sub(one, t) a = Mul(m, h) s = Sigmoid(h) b = Log(s) l = Sub(a, b)", 1, 1},
    {"binary_cross_entropy_with_logits",
     "pw = Constant<value = float[4] {1,2,3,4}>() q = Sub(pw, one) r = Mul(q, t) k = Add(r, one) m "
     "= Sub(one, t) a = Mul(m, h) s = Sigmoid(h) "
     "b = Log(s) c = Mul(k, b) l = Sub(a, c)",
     5, 5},
};

template <typename Message>
void AddMetadata(Message& message, const std::string& key, const std::string& value) {
  auto& property = *message.add_metadata_props();
  property.set_key(key);
  property.set_value(value);
}

// Each node has an origin of its own, as after a decomposition, but those of log_sigmoid. All but
// the first come from line 2, and the total from the line `trace`.
ModelGraph LossOf(const LossRow& row, const std::string& total, const std::string& trace,
                  Autograd autograd = Autograd::kTorchCuda, const std::string& noted = "") {
  onnx::ModelProto proto = ParseGraph(
      "g (float[2,4] x, float[2,4] t) => (float y) <float[4,4] w = "
      "{1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7}, float[4] learned = {1,2,3,4}, float half = {0.5}, "
      "float two = {2}, float one = {1}, float low = {-100}, float d = {0.25}, "
      "float eighth = {0.125}> { h = MatMul(x, w) " +
      row.formula + " " + total + " }");
  auto& nodes = *proto.mutable_graph()->mutable_node();
  Origins origins;
  for (int i = 0; i < nodes.size(); ++i) {
    const std::string own = "o" + std::to_string(i) + " aten.of" + std::to_string(i);
    const bool is_sigmoid =
        nodes[i].op_type() == "Sigmoid" || (i > 0 && nodes[i - 1].op_type() == "Sigmoid");
    origins.push_back(is_sigmoid ? "log aten.log_sigmoid.default" : own);
    AddMetadata(nodes[i], "pkg.torch.onnx.stack_trace",
                i == 0                  ? "model.py, line 1"
                : i + 1 == nodes.size() ? trace
                                        : "line 2");
  }
  SetOrigins(proto, origins);
  if (!noted.empty()) {
    AddMetadata(*proto.mutable_graph(), "ckplan.eager", "1");
    for (int i = 1; i < nodes.size(); ++i) AddMetadata(nodes[i], "ckplan.origin", noted);
  }
  return LowerProto(proto, Restored(autograd), autograd);
}

TEST_CASE("restore: the formula of a loss is one operation if one line of Python made it") {
  for (const LossRow& row : kLosses) {
    CAPTURE(row.formula);
    const ModelGraph mean = LossOf(row, "y = ReduceMean<keepdims = 0>(l)", "line 2");
    REQUIRE(OperatorsOf(mean) == "MatMul PointwiseLoss");
    const Node& loss = mean.graph.nodes()[NodeId(1)];
    CHECK(loss.backward_reads.size() == 2);
    CHECK(loss.backward_workspace == Bytes(row.workspace * 32));

    const ModelGraph apart = LossOf(row, "y = ReduceSum<keepdims = 0>(l)", "line 3");
    CHECK(OperatorsOf(apart) == "MatMul PointwiseLoss ReduceSum");
    CHECK(apart.graph.nodes()[NodeId(1)].backward_workspace == Bytes(row.of_elements * 32));
    const ModelGraph minimal =
        LossOf(row, "y = ReduceMean<keepdims = 0>(l)", "line 2", Autograd::kMinimal);
    CHECK(OperatorsOf(minimal).find("PointwiseLoss") == std::string::npos);
  }
  const auto noted = [](const std::string& origin) {
    return OperatorsOf(LossOf(kLosses[0], "y = ReduceMean<keepdims = 0>(l)", "line 2",
                              Autograd::kTorchCuda, origin));
  };
  CHECK(noted("huber_loss aten.huber_loss.default") == "MatMul PointwiseLoss");
  CHECK(noted("mine aten.add.Tensor").find("PointwiseLoss") == std::string::npos);
  CHECK(noted("-").find("PointwiseLoss") == std::string::npos);
  // Written by hand in two lines.
  LossRow by_hand = kLosses[0];
  by_hand.formula += " u = Identity(l)";
  CHECK(OperatorsOf(LossOf(by_hand, "y = ReduceMean<keepdims = 0>(u)", "line 2")) ==
        "MatMul PointwiseLoss ReduceMean");
}

TEST_CASE("restore: what only resembles the formula of a loss stays as it is") {
  struct Row {
    size_t loss;
    const char* from;
    const char* to;
  };
  const Row rows[] = {
      {0, "half", "two"},
      {3, "Max(b, low)", "Max(b, one)"},  // Another clamp.
      {3, "Max(f, low)", "Max(f, h)"},    // By a result of the network.
      {3, "Max(f, low)", "Max(f)"},       // By nothing.
      {5, "Sub(pw, one)", "Sub(learned, one)"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.to);
    LossRow other = kLosses[row.loss];
    other.formula.replace(other.formula.find(row.from), std::string(row.from).size(), row.to);
    CHECK(OperatorsOf(LossOf(other, "y = ReduceMean<keepdims = 0>(l)", "line 2"))
              .find("PointwiseLoss") == std::string::npos);
  }
}

TEST_CASE("restore: PyTorch's var saves its input, and rsqrt its output") {
  const std::string constants =
      ", int64[1] axes = {1}, int64[1] first_axis = {0}, float n_const = {4}, float less_const = "
      "{3}";
  const std::string spread =
      "m = ReduceMean(h, axes) s = Sub(h, m) q = Mul(s, s) r = ReduceMean(q, axes)";
  const auto operators = [&constants](const std::string& body, const std::string& origin,
                                      Autograd autograd = Autograd::kTorchCuda) {
    Origins origins(static_cast<size_t>(std::count(body.begin(), body.end(), '=')), origin);
    if (body.find("Add") != std::string::npos) origins.back() = "add aten.add.Tensor";
    return OperatorsOf(body, origins, autograd, constants);
  };
  const std::string var = "var prims.var.default";
  CHECK(operators(spread + " p = Mul(r, n_const) v = Div(p, less_const) y = Add(v, h)", var) ==
        "MatMul ReduceVariance Add");
  CHECK(operators(spread + " y = Add(r, h)", var) == "MatMul ReduceVariance Add");
  // Without origins, the formula decides.
  const auto by_form = [&constants](const std::string& body) {
    return OperatorsOf(body, {}, Autograd::kTorchCuda, constants).find("ReduceVariance") !=
           std::string::npos;
  };
  CHECK(by_form(spread + " y = Add(r, h)"));
  CHECK(by_form(spread + " y = Add(r, r)"));
  CHECK(by_form(spread + " p = Mul(r, n_const) v = Div(p, less_const) y = Add(v, h)"));
  CHECK_FALSE(by_form(spread + " p = Mul(r, n_const) y = Add(p, h)"));  // A correction of 3.
  CHECK_FALSE(
      by_form("m = ReduceMean(h, first_axis) s = Sub(h, m) q = Mul(s, s) r = ReduceMean(q, axes) "
              "y = Add(r, h)"));
  CHECK(operators(spread + " p = Mul(r, n_const) v = Div(p, less_const) y = Add(v, h)", var,
                  Autograd::kMinimal)
            .find("ReduceVariance") == std::string::npos);
  CHECK(operators("r = Sqrt(h) y = Reciprocal(r)", "rsqrt aten.rsqrt.default") == "MatMul Rsqrt");
  CHECK(operators("r = Sqrt(h) y = Reciprocal(r)", "rsqrt aten.rsqrt.default",
                  Autograd::kMinimal) == "MatMul Sqrt Reciprocal");
  CHECK(OperatorsOf("r = Sqrt(h) y = Reciprocal(r)",
                    {"sqrt aten.sqrt.default", "inverse aten.reciprocal.default"},
                    Autograd::kTorchCuda) == "MatMul Sqrt Reciprocal");
}

TEST_CASE("restore: selecting by indices adds to a copy of zeros, unlike an embedding") {
  const auto workspace = [](const std::string& target) {
    onnx::ModelProto proto = ParseGraph(Graph("y = Gather(h, i)", ", int64[2] i = {1,0}"));
    SetOrigins(proto, {"linear aten.linear.default", "picked " + target});
    const auto lowered = LowerProto(proto, Restored(Autograd::kTorchCuda), Autograd::kTorchCuda);
    return lowered.graph.nodes()[NodeId(1)].backward_workspace;
  };
  CHECK(workspace("aten.index_select.default") == Bytes(4 * 8));
  CHECK(workspace("aten.index.Tensor") == Bytes(4 * 8));
  CHECK(workspace("aten.embedding.default") == Bytes(0));
}

TEST_CASE("restore: what reads an expanded tensor reads it before, for PyTorch's autograd") {
  const std::string body =
      "s = ReduceSum<keepdims = 1>(h, axes) e = Expand(s, shape) y = Div(h, e)";
  const std::string constants = ", int64[1] axes = {1}, int64[2] shape = {2,4}";
  CHECK(OperatorsOf(body, {}, Autograd::kTorch, constants) == "MatMul ReduceSum Div");
  CHECK(OperatorsOf(body, {}, Autograd::kMinimal, constants) == "MatMul ReduceSum Expand Div");
  const std::string only =
      "s = ReduceSum<keepdims = 1>(h, axes) e = Expand(s, shape) y = Mul(e, s)";
  CHECK(OperatorsOf(only, {}, Autograd::kTorch, constants) == "MatMul ReduceSum Expand Mul");
}

TEST_CASE("restore: Softplus loses its threshold, and keeps a factor") {
  const std::string constants =
      ", float t_const = {20}, float one_const = {1}, float b_const = {2}";
  const std::string plain = "c = Greater(h, t_const) s = Softplus(h) y = Where(c, h, s)";
  const std::string whole =
      "a = Mul(h, one_const) s = Softplus(a) d = Div(s, one_const) c = Greater(a, t_const) y = "
      "Where(c, h, d)";
  const std::string scaled =
      "a = Mul(h, b_const) s = Softplus(a) d = Div(s, b_const) c = Greater(a, t_const) y = "
      "Where(c, h, d)";
  CHECK(OperatorsOf(plain, {}, Autograd::kMinimal, constants) == "MatMul Softplus");
  CHECK(OperatorsOf(whole, {}, Autograd::kMinimal, constants) == "MatMul Softplus");
  CHECK(OperatorsOf(scaled, {}, Autograd::kTorch, constants) == "MatMul Softplus");
  CHECK(OperatorsOf(scaled, {}, Autograd::kMinimal, constants) == "MatMul Softplus");
}

constexpr const char* kGroupNorm =
    "g (float[2,4,3,3] x) => (float[2,4,3,3] y) <float[4,4,1,1] w = "
    "{1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7}, float[4] gamma = {1,1,1,1}, float[4,1,1] wide = "
    "{1,1,1,1}, float[4] beta = {0,0,0,0}, int64[3] groups = {0,2,-1}, int64[4] back = {2,4,3,3}, "
    "int64[2] axes = {1,2}> { h = Conv(x, w) "
    "ones = Constant<value = float[2] {1,1}>() zeros = Constant<value = float[2] {0,0}>() "
    "s = Reshape(h, groups) n = InstanceNormalization<epsilon = 0.001>(s, ones, zeros) "
    "r = Reshape(n, back) ";

TEST_CASE("restore: GroupNormalization has its scale and shift, one for each channel") {
  const std::string tail = "u = Unsqueeze(beta, axes) y = Add(m, u) }";
  const std::string by_view = "v = Unsqueeze(gamma, axes) m = Mul(r, v) ";
  for (const std::string& scale : {by_view, std::string("m = Mul(r, wide) ")}) {
    const Result<Model> model = LoadProto(ParseGraph(kGroupNorm + scale + tail), Restored());
    REQUIRE_MESSAGE(model.ok(), model.error().message);
    const ModelGraph lowered =
        LowerModel(*model, {.cost = ParseCostModel("flops").value()}).value();
    CHECK(OperatorsOf(lowered) == "Conv GroupNormalization");
    CHECK(lowered.graph.constants().parameter_gradients == Bytes(4 * (16 + 4 + 4)));
    const Node& norm = NodeOf(lowered.graph, "GroupNormalization");
    CHECK(lowered.graph.tensor(norm.outputs.back()).bytes == Bytes(8 * 2 * 2));
    REQUIRE(model->restored().size() == 1);
    CHECK(model->restored()[0].op == "GroupNormalization");
  }
}

TEST_CASE("restore: a loss has the buffers that PyTorch's has, under its autograd alone") {
  const std::string graph =
      "g (float[3,4] x, int64[3] t) => (float y) <float[4,5] w = "
      "{1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,1,2,3,4}> { h = MatMul(x, w) "
      "y = SoftmaxCrossEntropyLoss(h, t) }";
  const auto operators = [&graph](Autograd autograd) {
    return OperatorsOf(LowerProto(ParseGraph(graph), Restored(autograd), autograd));
  };
  CHECK(operators(Autograd::kMinimal) == "MatMul SoftmaxCrossEntropyLoss");
  CHECK(operators(Autograd::kTorch) == "MatMul LogSoftmax NegativeLogLikelihoodLoss");
  CHECK(operators(Autograd::kTorchCuda) == "MatMul LogSoftmax NegativeLogLikelihoodLoss");
}

TEST_CASE("restore: the guard of a Softmax is none under PyTorch's autograd") {
  const std::string body = "p = Softmax(h) n = IsNaN(p) y = Where(n, zero, p)";
  const std::string constants = ", float zero = {0}";
  CHECK(OperatorsOf(body, {}, Autograd::kTorch, constants) == "MatMul Softmax");
  const std::string by_zero = Graph("p = Softmax(h) n = IsNaN(p) y = Where(n, zero, p)", constants);
  const Result<Model> model = LoadProto(ParseGraph(by_zero), Restored(Autograd::kTorch));
  REQUIRE(model.ok());
  LowerOptions options{.autograd = Autograd::kTorch};
  options.cost = ParseCostModel("flops").value();
  const ModelGraph lowered = LowerModel(*model, options).value();
  const StepGraph step = BuildStepGraph(*model, lowered, Autograd::kTorch).value();
  CHECK(IsGuarded(step.nodes[NodeId(1)].spec));
  CHECK(OperatorsOf(body, {}, Autograd::kMinimal, constants) == "MatMul Softmax IsNaN Where");
}

TEST_CASE("restore: parameters and buffers are those of the file's signature") {
  onnx::ModelProto proto = ParseGraph(Graph("m = Mul(h, scale) y = Mul(m, val_1)",
                                            ", float[4] scale = {1,1,1,1}, float val_1 = {2}"));
  const auto gradients = [&proto] {
    return LowerProto(proto, Restored()).graph.constants().parameter_gradients.count();
  };
  CHECK(gradients() == 4 * (16 + 4));
  auto& property = *proto.mutable_graph()->add_metadata_props();
  property.set_key("pkg.torch.export.ExportedProgram.graph_signature");
  property.set_value(
      "\n# inputs\np_w: PARAMETER target='w'\nb_scale: BUFFER target='scale' persistent=True\n"
      "p_temperature: PARAMETER target='val_1'\nx: USER_INPUT\n");
  CHECK(gradients() == 4 * (16 + 1));
  CHECK(LowerProto(proto).graph.constants().parameter_gradients.count() == 4 * (16 + 4));
}

TEST_CASE("restore: buffers of integers count, and the counters that exporters leave out") {
  onnx::ModelProto proto =
      ParseGraph(Graph("y = Relu(h)", ", float[1] scale = {1}, int64[3] positions = {0,1,2}"));
  const Bytes weight(4 * 16);
  CHECK(LowerProto(proto, Restored()).graph.constants().parameters == weight);
  auto& property = *proto.mutable_graph()->add_metadata_props();
  property.set_key("pkg.torch.export.ExportedProgram.graph_signature");
  property.set_value(
      "\n# inputs\np_w: PARAMETER target='w'\n"
      "b_positions: BUFFER target='positions' persistent=False\n"
      "b_num_batches_tracked: BUFFER target='bn.num_batches_tracked' persistent=True\n"
      "b_other: BUFFER target='bn.other' persistent=True\nx: USER_INPUT\n\n# outputs\n"
      "add: BUFFER_MUTATION target='bn.num_batches_tracked'\n");
  const ConstantMemory constants = LowerProto(proto, Restored()).graph.constants();
  CHECK(constants.parameters == weight + Bytes(3 * 8) + Bytes(8));
  CHECK(constants.parameter_gradients == weight);
  CHECK(LowerProto(proto).graph.constants().parameters == weight);
}

TEST_CASE("restore: what is folded from a parameter is trained") {
  onnx::ModelProto proto = ParseGraph(Graph("y = Add(h, val_2)", ", float[1,4] val_2 = {1,1,1,1}"));
  const auto add = [&proto](const std::string& name, const std::string& key,
                            const std::string& value) {
    auto& info = *proto.mutable_graph()->add_value_info();
    info.set_name(name);
    auto& property = *info.add_metadata_props();
    property.set_key(key);
    property.set_value(value);
  };
  add("w", "pkg.torch.export.graph_signature.InputSpec.kind", "PARAMETER");
  add("bias", "pkg.torch.export.graph_signature.InputSpec.kind", "PARAMETER");
  CHECK(LowerProto(proto, Restored()).graph.constants().parameter_gradients == Bytes(4 * 16));
  add("val_2", "pkg.onnxscript.optimizer.folded_from", "['bias', 'val_1']");
  CHECK(LowerProto(proto, Restored()).graph.constants().parameter_gradients == Bytes(4 * (16 + 4)));
}

TEST_CASE(
    "restore: a weight that two operations train has two gradients under PyTorch's autograd") {
  const onnx::ModelProto proto = ParseGraph(Graph("k = Relu(h) m = MatMul(k, w) y = Relu(m)"));
  for (const Autograd autograd : {Autograd::kMinimal, Autograd::kTorch}) {
    const ModelGraph lowered = LowerProto(proto, Restored(autograd), autograd);
    std::vector<int64_t> added;
    for (const Node& node : lowered.graph.nodes()) {
      if (node.op == "MatMul") added.push_back(node.backward_workspace.count());
    }
    const int64_t first = autograd == Autograd::kTorch ? 4 * 16 : 0;
    CHECK(added == std::vector<int64_t>{first, 0});
  }
}

TEST_CASE("restore: an origin is read from the node in the program, or from its scopes") {
  onnx::ModelProto proto = ParseGraph(Graph("s = Sigmoid(h) y = Mul(h, s)"));
  for (const int node : {1, 2}) {
    auto& scopes = *proto.mutable_graph()->mutable_node(node)->add_metadata_props();
    scopes.set_key("pkg.torch.onnx.name_scopes");
    scopes.set_value("['', 'act', 'silu']");
    auto& classes = *proto.mutable_graph()->mutable_node(node)->add_metadata_props();
    classes.set_key("pkg.torch.onnx.class_hierarchy");
    classes.set_value("['Net', 'torch.nn.modules.activation.SiLU', 'aten.silu.default']");
  }
  const Result<Model> model = LoadProto(proto, Restored());
  REQUIRE_MESSAGE(model.ok(), model.error().message);
  REQUIRE(model->restored().size() == 1);
  CHECK(model->restored()[0].origin == "aten.silu.default");
  CHECK(model->restored()[0].replaced == std::vector<std::string>{"Sigmoid", "Mul"});
}

}  // namespace
}  // namespace ckplan
