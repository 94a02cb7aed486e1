#include "lib/files/model/fuse_attention.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "lib/files/model/op_spec_of.h"
#include "lib/files/model/testing/models.h"

namespace ckplan {
namespace {

LoadOptions Fused() {
  LoadOptions options;
  options.fused = FusedOperators::kAttention;
  return options;
}

// Loads a graph with weights w and u, a bias of heads, and one that is the same for all queries.
Model LoadNet(const std::string& graph, const LoadOptions& options = Fused(), int64_t width = 4,
              int opset = 20) {
  const TemporaryFile file("attention.onnx");
  file.Write(ModelFileBytes(
      graph,
      {{"w", {width, width}}, {"u", {width, width}}, {"bias", {1, 3, 5, 5}}, {"row", {1, 3, 1, 5}}},
      opset));
  Result<Model> model = LoadModel(file.path(), options);
  REQUIRE_MESSAGE(model.ok(), model.error().message);
  return std::move(model).value();
}

ModelGraph LowerNet(const Model& model) {
  LowerOptions lower;
  lower.cost = ParseCostModel("flops").value();
  Result<ModelGraph> lowered = LowerModel(model, lower);
  REQUIRE_MESSAGE(lowered.ok(), lowered.error().message);
  return std::move(lowered).value();
}

// The nodes of a model's step, by their operators.
std::string NodesOf(const Model& model) {
  const ModelGraph lowered = LowerNet(model);
  std::string operators;
  for (const Node& node : lowered.graph.nodes())
    operators += (operators.empty() ? "" : " ") + node.op;
  return operators;
}

// The only FusedAttention of a model, as it is described to backends.
OpSpec SpecOfFused(const Model& model) {
  for (const ModelOperation& operation : model.impl().operations) {
    if (operation.type() == "FusedAttention") return PlannedSpecOf(model.impl(), operation);
  }
  FAIL("no attention is fused");
  return {};
}

// Attention over q, k and v of [2,3,5,4], with a mask and with weights before and after it.
std::string Core(const std::string& scores, const std::string& output,
                 const std::string& inputs = "") {
  return "g (float[2,3,5,4] x" + inputs +
         ") => (float[2,3,5,4] y) <float half_const = {0.5}, float four_const = {4}, float zero = "
         "{0}, float gain = {0.5}, float "
         "low = {-inf}, "
         "float finite = {-3e38}> { "
         "q = MatMul(x, w) k0 = MatMul(x, u) k = Transpose<perm = [0,1,3,2]>(k0) r = MatMul(q, "
         "k) " +
         scores + " p = Softmax(s) " + output + " }";
}

TEST_CASE("fuse attention: products, scale, softmax and the transpose of keys are one node") {
  const std::string graph = Core("s = Mul(r, half_const)", "y = MatMul(p, x)");
  CHECK(NodesOf(LoadNet(graph)) == "MatMul MatMul FusedAttention");
  const OpSpec spec = SpecOfFused(LoadNet(graph));
  CHECK(spec.Int("batch", 0) == 2);
  CHECK(spec.Int("heads", 0) == 3);
  CHECK(spec.Int("queries", 0) == 5);
  CHECK(spec.Int("keys", 0) == 5);
  CHECK(spec.Int("size", 0) == 4);
  CHECK(spec.Float("scale", 0) == 0.5);
  CHECK(spec.String("k_axes", "") == "bhsd");
  CHECK(spec.inputs.size() == 3);
}

TEST_CASE("fuse attention: without the flag nothing is fused") {
  const ModelGraph apart =
      LowerNet(LoadNet(Core("s = Mul(r, half_const)", "y = MatMul(p, x)"), {}));
  CHECK(apart.graph.nodes().size() == 7);
}

TEST_CASE("fuse attention: it saves the logarithms of sums, and reads no scores") {
  const ModelGraph lowered = LowerNet(LoadNet(Core("s = Div(r, four_const)", "y = MatMul(p, x)")));
  const Node& node = NodeOf(lowered.graph, "FusedAttention");
  CHECK(node.name == "Softmax:p");
  CHECK(NamesOf(lowered.graph, node.inputs) == "q k0 x");
  CHECK(NamesOf(lowered.graph, node.outputs) == "y Softmax:p:logsumexp");
  CHECK(NamesOf(lowered.graph, node.backward_reads) == "q k0 x y Softmax:p:logsumexp");
  CHECK(lowered.graph.tensor(node.outputs[1]).bytes == Bytes(2 * 3 * 5 * 4));
}

TEST_CASE("fuse attention: heads are taken from before they are transposed, and given after it") {
  const std::string graph =
      "g (float[2,5,12] x) => (float[2,5,12] y) <int64[4] split = {0,0,3,4}, "
      "int64[3] joined = {0,0,12}> { "
      "q0 = MatMul(x, w) q1 = Reshape(q0, split) q = Transpose<perm = [0,2,1,3]>(q1) "
      "x1 = Reshape(x, split) k = Transpose<perm = [0,2,3,1]>(x1) "
      "v = Transpose<perm = [0,2,1,3]>(x1) r = MatMul(q, k) p = Softmax(r) o = MatMul(p, v) "
      "t = Transpose<perm = [0,2,1,3]>(o) y = Reshape(t, joined) }";
  CHECK(NodesOf(LoadNet(graph, Fused(), 12)) == "MatMul FusedAttention");
  const OpSpec spec = SpecOfFused(LoadNet(graph, Fused(), 12));
  for (const char* const axes : {"q_axes", "k_axes", "v_axes", "y_axes"}) {
    CHECK(spec.String(axes, "") == "bshd");
  }
  CHECK(spec.output(0).dims == std::vector<int64_t>{2, 5, 3, 4});
}

// Loads an attention in this type, written as exporters do. They say that its result is copied
// after its heads are moved.
Model LoadCopied(const std::string& type, const std::string& queries, const LoadOptions& options) {
  const std::string graph =
      "g (" + type + "[2,5,12] x) => (" + type + "[2,5,12] y) <int64[4] split = {2,5,3,4}, " +
      "int64[4] turned = {2,3,5,4}, int64[3] join = {2,5,12}> { root0 = Constant <value_float = "
      "0.7> () root = CastLike(root0, x) h = MatMul(x, w) r = Reshape(h, split) " +
      queries +
      "k = Transpose<perm = [0,2,3,1]>(r) v = Transpose<perm = [0,2,1,3]>(r) "
      "qs = Mul(q, root) ks = Mul(k, root) s = MatMul(qs, ks) p = Softmax(s) o = MatMul(p, v) "
      "t = Transpose<perm = [0,2,1,3]>(o) c = Identity(t) j = Reshape(c, join) y = MatMul(j, u) }";
  onnx::ModelProto proto;
  REQUIRE(proto.ParseFromString(ModelFileBytes(graph, {{"w", {12, 12}}, {"u", {12, 12}}})));
  for (onnx::TensorProto& weight : *proto.mutable_graph()->mutable_initializer()) {
    const bool is_trained = weight.name() == "w" || weight.name() == "u";
    if (is_trained && type == "float16") weight.set_data_type(onnx::TensorProto::FLOAT16);
  }
  for (onnx::NodeProto& node : *proto.mutable_graph()->mutable_node()) {
    if (node.op_type() != "Identity") continue;
    auto& property = *node.add_metadata_props();
    property.set_key("pkg.torch.onnx.fx_node");
    property.set_value(
        "%clone : [num_users=1] = call_function[target=torch.ops.aten.clone.default](");
  }
  const TemporaryFile file("copied.onnx");
  file.Write(proto.SerializeAsString());
  Result<Model> model = LoadModel(file.path(), options);
  REQUIRE_MESSAGE(model.ok(), model.error().message);
  return *std::move(model);
}

TEST_CASE("fuse attention: a result that PyTorch copies after its transpose keeps the transpose") {
  const std::string moved = "q = Transpose<perm = [0,2,1,3]>(r) ";
  const std::string heads_first = "q = Reshape(h, turned) ";
  LoadOptions options;
  options.fused = FusedOperators::kCaptured;
  const std::string copied = "MatMul FusedAttention Transpose MatMul";
  for (const Autograd autograd : {Autograd::kMinimal, Autograd::kTorch}) {
    options.autograd = autograd;
    CHECK(NodesOf(LoadCopied("float", moved, options)) == copied);
  }
  // Kernels for GPUs have the heads of a row side by side, so that nothing is copied, unless flash
  // attention has queries whose heads come first.
  options.autograd = Autograd::kTorchCuda;
  const std::string as_it_is = "MatMul FusedAttention MatMul";
  CHECK(NodesOf(LoadCopied("float", moved, options)) == as_it_is);
  CHECK(NodesOf(LoadCopied("float", heads_first, options)) == as_it_is);
  CHECK(NodesOf(LoadCopied("float16", moved, options)) == as_it_is);
  CHECK(NodesOf(LoadCopied("float16", heads_first, options)) == copied);
}

TEST_CASE("fuse attention: the ways in which masks are written") {
  const std::string seen = ", bool[2,1,1,5] seen";
  const std::string plain = "y = MatMul(p, x)";
  const std::string guarded = "n = IsNaN(p) c = Where(n, zero, p) y = MatMul(c, x)";
  const auto spec_of = [&](const std::string& scores, const std::string& output,
                           const std::string& inputs = "") {
    CAPTURE(scores);
    const std::string graph = Core(scores, output, inputs);
    CHECK(NodesOf(LoadNet(graph)).find("Softmax") == std::string::npos);
    return SpecOfFused(LoadNet(graph));
  };
  const OpSpec bias = spec_of("t = Mul(r, half_const) s = Add(t, bias)", plain);
  CHECK(bias.Ints("mask_dims") == std::vector<int64_t>{1, 3, 5, 5});
  const OpSpec shown = spec_of("s = Where(seen, r, low)", guarded, seen);
  CHECK(shown.input(3).model_type() == TensorType::kBool);
  CHECK(shown.Ints("mask_dims") == std::vector<int64_t>{2, 1, 1, 5});
  CHECK(shown.Int("mask_hides", 0) == 0);
  CHECK_FALSE(shown.Has("fill"));
  const OpSpec hidden = spec_of("s = Where(seen, finite, r)", plain, seen);
  CHECK(hidden.Int("mask_hides", 0) == 1);
  CHECK(hidden.Float("fill", 0) == doctest::Approx(-3e38));
  // A mask of numbers that Where makes of booleans is those booleans.
  const OpSpec made =
      spec_of("m = Where(seen, zero, low) t = Add(m, r) s = Add(t, bias)", guarded, seen);
  CHECK(made.input(3).model_type() == TensorType::kBool);
  CHECK(made.Ints("bias_dims") == std::vector<int64_t>{1, 3, 5, 5});
  CHECK(made.input(4).dims == std::vector<int64_t>{1, 3, 5, 5});
}

TEST_CASE("fuse attention: the numbers of a mask that is made before the step are not trained") {
  std::string graph =
      Core("e = Expand(fixed, sizes) m = Where(e, zero, low) s = Add(r, m)", "y = MatMul(p, x)");
  graph.insert(graph.find('<') + 1,
               "bool[1,1,5,1] fixed = {1,1,0,1,1}, int64[4] sizes = {2,1,5,5}, ");
  const ModelGraph lowered = LowerNet(LoadNet(graph));
  CHECK(NamesOf(lowered.graph, NodeOf(lowered.graph, "FusedAttention").inputs) == "q k0 x");
  // The two weights alone.
  CHECK(lowered.graph.constants().parameter_gradients == Bytes(2 * 4 * 4 * 4));
}

TEST_CASE("fuse attention: windows that share a mask, and a bias of the heads") {
  const std::string graph =
      "g (float[8,3,5,4] x, bool[1,4,1,5,5] seen) => (float[8,3,5,4] y) <float zero = {0}, float "
      "gain = {0.5}, float "
      "low = {-inf}, int64[5] out = {2,4,3,5,5}, "
      "int64[4] back = {8,3,5,5}> { q = MatMul(x, w) k = Transpose<perm = [0,1,3,2]>(x) "
      "r = MatMul(q, k) a = Add(r, bias) b = Reshape(a, out) m = Where(seen, zero, low) "
      "c = Add(b, m) s = Reshape(c, back) p = Softmax(s) y = MatMul(p, x) }";
  CHECK(NodesOf(LoadNet(graph)) == "MatMul FusedAttention");
  const OpSpec spec = SpecOfFused(LoadNet(graph));
  CHECK(spec.Ints("mask_dims") == std::vector<int64_t>{4, 1, 5, 5});
  CHECK(spec.Ints("bias_dims") == std::vector<int64_t>{1, 3, 5, 5});
}

TEST_CASE("fuse attention: keys and values that are repeated for more heads are shared") {
  const std::string graph =
      "g (float[2,6,5,4] x, float[2,3,5,4] z) => (float[2,6,5,4] y) <"
      "int64[5] apart = {2,3,1,5,4}, int64[5] more = {2,3,2,5,4}, int64[4] all = {2,6,5,4}> { "
      "q = MatMul(x, w) h = MatMul(z, w) a = Reshape(h, apart) b = Expand(a, more) "
      "c = Reshape(b, all) k = Transpose<perm = [0,1,3,2]>(c) r = MatMul(q, k) p = Softmax(r) "
      "y = MatMul(p, c) }";
  CHECK(NodesOf(LoadNet(graph)) == "MatMul MatMul FusedAttention");
  CHECK(SpecOfFused(LoadNet(graph)).Int("key_heads", 0) == 3);
}

TEST_CASE("fuse attention: ONNX's own Attention saves no probabilities either") {
  const OpSpec spec =
      SpecOfFused(LoadNet("g (float[2,5,24] x, bool[5,6] m, float[2,6,8] z) => (float[2,5,24] y) "
                          "{ q = MatMul(x, w) y = Attention<q_num_heads = 6, kv_num_heads = 2, "
                          "is_causal = 1>(q, z, z, m) }",
                          Fused(), 24, 23));
  CHECK(spec.Float("scale", 0) == doctest::Approx(0.5));
  CHECK(spec.Int("key_heads", 0) == 2);
  CHECK(spec.Int("is_causal", 0) == 1);
  CHECK(spec.Ints("mask_dims") == std::vector<int64_t>{1, 1, 5, 6});
  CHECK(spec.String("q_axes", "") == "bshd");
}

TEST_CASE("fuse attention: what is read elsewhere, or is no attention, stays as it is") {
  const std::string plain = "y = MatMul(p, x)";
  struct Row {
    std::string name, scores, output;
  };
  const Row rows[] = {
      {"probabilities are read twice", "s = Mul(r, half_const)",
       "o = MatMul(p, x) z = MatMul(p, x) "
       "y = Add(o, z)"},
      {"scores are read twice", "s = Mul(r, half_const)",
       "o = MatMul(p, x) e = MatMul(s, x) "
       "y = Add(o, e)"},
      {"the mask is scaled as well", "t = Add(r, bias) s = Mul(t, half_const)", plain},
      {"a bias with a gradient is the same for all queries", "s = Add(r, row)", plain},
      {"the scores are no product", "t = Tanh(r) s = Mul(t, half_const)", plain},
      {"the scale is trained", "s = Mul(r, gain)", plain},
      {"probabilities are scaled", "s = Mul(r, half_const)",
       "o = Mul(p, half_const) y = MatMul(o, x)"},
      {"another number replaces NaN", "s = Mul(r, half_const)",
       "n = IsNaN(p) c = Where(n, half_const, p) y = MatMul(c, x)"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const std::string nodes = NodesOf(LoadNet(Core(row.scores, row.output)));
    CHECK(nodes.find("FusedAttention") == std::string::npos);
    CHECK(nodes.find("Softmax") != std::string::npos);
  }
  // The Softmax is over the queries.
  std::string across = Core("s = Mul(r, half_const)", plain);
  across.replace(across.find("Softmax"), 7, "Softmax<axis = 2>");
  CHECK(NodesOf(LoadNet(across)).find("FusedAttention") == std::string::npos);
}

LoadOptions Captured(Autograd autograd = Autograd::kMinimal) {
  LoadOptions options;
  options.fused = FusedOperators::kCaptured;
  options.autograd = autograd;
  return options;
}

// Attention whose queries and keys are scaled apart, as exporters write PyTorch's own.
std::string ScaledApart(const std::string& k_scale, const std::string& dropped = "") {
  return "g (float[2,3,5,4] x) => (float[2,3,5,4] y) <float half_const = {0.5}, float four_const = "
         "{4}, float tenth = {0.1}> { q0 = MatMul(x, w) k0 = MatMul(x, u) "
         "k1 = Transpose<perm = [0,1,3,2]>(k0) q = Mul(q0, half_const) k = Mul(k1, " +
         k_scale + ") r = MatMul(q, k) p = Softmax(r) " +
         (dropped.empty() ? "y = MatMul(p, x) }" : dropped + " y = MatMul(d, x) }");
}

TEST_CASE("fuse attention: captured takes what exporters write for PyTorch's own attention") {
  const std::string own = ScaledApart("half_const");
  CHECK(NodesOf(LoadNet(own, Captured())) == "MatMul MatMul FusedAttention");
  CHECK(SpecOfFused(LoadNet(own, Captured())).Float("scale", 0) == doctest::Approx(0.25));
  const std::string by_hand = Core("s = Mul(r, half_const)", "y = MatMul(p, x)");
  CHECK(NodesOf(LoadNet(by_hand, Captured())).find("FusedAttention") == std::string::npos);
  const std::string unlike = ScaledApart("four_const");
  CHECK(NodesOf(LoadNet(unlike, Captured())).find("FusedAttention") == std::string::npos);
  CHECK(NodesOf(LoadNet(unlike)) == "MatMul MatMul FusedAttention");
}

TEST_CASE("fuse attention: captured probabilities are dropped within it on a GPU alone") {
  const std::string dropped = ScaledApart("half_const", "d = Dropout(p, tenth)");
  const auto is_fused = [&dropped](Autograd autograd) {
    const std::string nodes = NodesOf(LoadNet(dropped, Captured(autograd)));
    return nodes.find("FusedAttention") != std::string::npos;
  };
  CHECK(is_fused(Autograd::kTorchCuda));
  CHECK_FALSE(is_fused(Autograd::kTorch));
  CHECK_FALSE(is_fused(Autograd::kMinimal));
}

}  // namespace
}  // namespace ckplan
