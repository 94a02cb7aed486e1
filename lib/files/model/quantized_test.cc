// Tests how much memory quantized weights count, and what is reported about them.

#include <algorithm>

#include "lib/files/model/constant.h"
#include "lib/files/model/testing/proto.h"

namespace ckplan {
namespace {

void AddWeight(onnx::ModelProto& proto, const char* name, int32_t type, const Dims& dims) {
  onnx::TensorProto& tensor = *proto.mutable_graph()->add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(type);
  for (const int64_t dim : dims) tensor.add_dims(dim);
  tensor.set_data_location(onnx::TensorProto::EXTERNAL);
}

bool IsReported(const ModelGraph& lowered, const std::string& part) {
  return std::any_of(lowered.warnings.begin(), lowered.warnings.end(),
                     [&part](const std::string& warning) {
                       return warning.find("weights are quantized") != std::string::npos &&
                              warning.find(part) != std::string::npos;
                     });
}

TEST_CASE("quantized: weights read by DequantizeLinear count as stored, and are not trained") {
  for (const auto& row : {std::pair{onnx::TensorProto::INT8, 32 * 16},
                          std::pair{onnx::TensorProto::UINT4, 32 * 16 / 2}}) {
    const auto type = row.first;
    const int64_t bytes = row.second;
    onnx::ModelProto proto = ParseGraph(
        "g (float[4,32] x) => (float[4,16] y) <float[32] g = {1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,"
        "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1}, float scale = {0.5}> "
        "{ h = Mul(x, g) w = DequantizeLinear(q, scale) y = MatMul(h, w) }",
        21);
    AddWeight(proto, "q", type, {32, 16});
    const ModelGraph lowered = LowerProto(proto);
    CAPTURE(bytes);
    // The trained vector, the scale, and the weight.
    CHECK(lowered.graph.constants().parameters == Bytes(32 * 4 + 4 + bytes));
    CHECK(lowered.graph.constants().parameter_gradients < Bytes(32 * 4 + 4 + bytes));
    CHECK(IsReported(lowered,
                     type == onnx::TensorProto::INT8 ? "\"q\" int8[32,16]" : "\"q\" uint4[32,16]"));
  }
}

// A quantized base and LoRA's two layers beside it. `base` makes "b" of the quantized "q".
TEST_CASE("quantized: the scales and zero points of weights are frozen, whatever applies them") {
  struct Row {
    const char* parameters;
    const char* base;
    int32_t type;
    Dims dims;
  };
  const Row rows[] = {
      {"float[4] s = {1,2,3,4}",
       "d = DequantizeLinear<axis = 1>(q, s) b = MatMul(x, d)",
       onnx::TensorProto::INT8,
       {8, 4}},
      {"float s = {1}",
       "d = DequantizeLinear(q, s) b = MatMul(x, d)",
       onnx::TensorProto::UINT4,
       {8, 4}},
      {"float[2,4] s = {1,2,3,4,5,6,7,8}",
       "d = DequantizeLinear<axis = 0, block_size = 4>(q, s) b = MatMul(x, d)",
       onnx::TensorProto::INT4,
       {8, 4}},
      {"float[4] s = {1,2,3,4}, float[4] z = {1,2,3,4}",
       "c = Cast<to = 1>(q) o = Sub(c, z) d = Mul(o, s) b = MatMul(x, d)",
       onnx::TensorProto::UINT8,
       {8, 4}},
      {"float[1,4] s = {1,2,3,4}, float[2,4,1] z = {1,2,3,4,5,6,7,8}, int64[3] blocks = {2,4,4}, "
       "int64[2] whole = {8,4}",
       "c = Cast<to = 1>(q) g = Reshape(c, blocks) o = Sub(g, z) d = Mul(o, s) "
       "e = Reshape(d, whole) b = MatMul(x, e)",
       onnx::TensorProto::UINT8,
       {8, 4}},
      {"float[4] s = {1,2,3,4}",
       "c = Cast<to = 1>(q) m = MatMul(x, c) b = Mul(m, s)",
       onnx::TensorProto::INT8,
       {8, 4}},
      {"float[4] s = {1,2,3,4}",
       "a, n, zero = DynamicQuantizeLinear(x) i = MatMulInteger(a, q, zero) f = Cast<to = 1>(i) "
       "t = Mul(n, s) b = Mul(f, t)",
       onnx::TensorProto::INT8,
       {8, 4}},
      {"float s = {1}",
       "d = DequantizeLinear(q, s) b = MatMul(x, d)",
       onnx::TensorProto::FLOAT8E4M3FN,
       {8, 4}},
      {"float[2] code = {-1,1}, float[4] s = {1,2,3,4}",
       "i = Cast<to = 6>(q) w = Gather(code, i) d = Mul(w, s) b = MatMul(x, d)",
       onnx::TensorProto::UINT8,
       {8, 4}},
      {"float[4] s = {1,2,3,4}",
       "b = com.microsoft.MatMulNBits<K = 8, N = 4, bits = 4, block_size = 32>(x, q, s)",
       onnx::TensorProto::UINT8,
       {4, 1, 16}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.base);
    onnx::ModelProto proto = ParseGraph(
        "g (float[2,8] x) => (float[2,4] y) <float[8,1] la = {1,2,3,4,5,6,7,8}, float[1,4] lb = "
        "{1,2,3,4}, " +
            std::string(row.parameters) + "> { " + row.base +
            " l = MatMul(x, la) m2 = MatMul(l, lb) y = Add(b, m2) }",
        21);
    onnx::ValueInfoProto& declared = *proto.mutable_graph()->add_value_info();
    declared.set_name("b");
    declared.mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::FLOAT);
    for (const int64_t dim : {2, 4}) {
      declared.mutable_type()->mutable_tensor_type()->mutable_shape()->add_dim()->set_dim_value(
          dim);
    }
    AddWeight(proto, "q", row.type, row.dims);
    const ModelGraph lowered = LowerProto(proto);
    CHECK(lowered.graph.constants().parameter_gradients == Bytes((8 + 4) * 4));
    const auto named = [&](const std::string& name) {
      const auto& tensors = lowered.graph.tensors();
      return std::any_of(tensors.begin(), tensors.end(), [&](const Tensor& tensor) {
        return tensor.name == name && tensor.requires_grad;
      });
    };
    CHECK_FALSE(named("b"));
    LoadOptions options;
    options.freeze = {"s"};  // It may be named, but nothing changes.
    CHECK(LowerProto(proto, options).graph.constants().parameter_gradients ==
          lowered.graph.constants().parameter_gradients);
  }
}

TEST_CASE("quantized: zero points are not reported as weights") {
  onnx::ModelProto proto = ParseGraph(
      "g (float[2,4] x) => (float[2,4] y) <float[4,4] w = "
      "{1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16}, "
      "float[4] s = {1,2,3,4}> { q = QuantizeLinear<axis = 1>(w, s, z) "
      "d = DequantizeLinear<axis = 1>(q, s, z) y = MatMul(x, d) }",
      21);
  AddWeight(proto, "z", onnx::TensorProto::INT8, {4});
  const ModelGraph lowered = LowerProto(proto);
  CHECK(lowered.graph.constants().parameter_gradients == Bytes(16 * 4));
  CHECK_FALSE(IsReported(lowered, ""));
}

TEST_CASE("quantized: what trains beside or after dequantized weights stays trained") {
  onnx::ModelProto proto = ParseGraph(
      "g (float[2,4] x) => (float[2,4] y) <float s = {1}, float[4,1] la = {1,2,3,4}, "
      "float[1,4] lb = {1,2,3,4}, float[4] magnitude = {1,2,3,4}, float[4] ia3 = {1,2,3,4}, "
      "float[4] bias = {1,2,3,4}> "
      "{ d = DequantizeLinear(q, s) ab = MatMul(la, lb) sum = Add(d, ab) v = Mul(sum, magnitude) "
      "  h = MatMul(x, v) e = DequantizeLinear(q, s) g = MatMul(h, e) i = Mul(g, ia3) "
      "  y = Add(i, bias) }",
      21);
  AddWeight(proto, "q", onnx::TensorProto::INT8, {4, 4});
  CHECK(LowerProto(proto).graph.constants().parameter_gradients == Bytes(5 * 16));
}

TEST_CASE("quantized: weights read by an operator on integers count as stored") {
  onnx::ModelProto proto = ParseGraph(
      "g (float[4,32] x) => (float[4,16] y) <float s = {0.5}> "
      "{ a, scale, zero = DynamicQuantizeLinear(x) p = MatMulInteger(a, q, zero) "
      "  f = Cast<to = 1>(p) y = Mul(f, s) }");
  AddWeight(proto, "q", onnx::TensorProto::INT8, {32, 16});
  const ModelGraph lowered = LowerProto(proto);
  CHECK(lowered.graph.constants().parameters == Bytes(32 * 16 + 4));
  CHECK(lowered.graph.constants().parameter_gradients == Bytes(0));
  CHECK(IsReported(lowered, "\"q\" int8[32,16]"));
}

TEST_CASE("quantized: weights read by an unknown operator count as stored") {
  onnx::ModelProto proto = ParseGraph(
      "g (float[4,32] x) => (float[4,16] y) { y = com.microsoft.MatMulNBits<K = 32, "
      "N = 16, bits = 4, block_size = 32>(x, q, scales, zeros) }");
  AddWeight(proto, "q", onnx::TensorProto::UINT8, {16, 1, 16});
  AddWeight(proto, "scales", onnx::TensorProto::FLOAT, {16});
  AddWeight(proto, "zeros", onnx::TensorProto::UINT8, {16, 1});
  const ModelGraph lowered = LowerProto(proto);
  CHECK(lowered.graph.constants().parameters == Bytes(16 * 16 + 16 * 4 + 16));
  CHECK(lowered.graph.constants().parameter_gradients == Bytes(0));
  CHECK(IsReported(lowered, "\"q\" uint8[16,1,16]"));
  CHECK_FALSE(IsReported(lowered, "zeros"));
}

// A step in which `node` makes "a" of the quantized "q" [2,4,5,6], or of "f", its rows.
onnx::ModelProto QuantizedStep(const std::string& node) {
  onnx::ModelProto proto = ParseGraph(
      "g (float[2,4,5,6] x0) => (float[] y) <float w = {2}, float v = {2}, float s = {0.5}, "
      "uint8 z = {3}, uint8[5,1] c = {1,2,3,4,5}, uint8[4] o = {1,2,3,4}, "
      "bool[1,4,1,1] b = {1,0,1,0}> { x = Mul(x0, w) q = QuantizeLinear(x, s, z) f = Flatten(q) "
      "a = com.microsoft." +
      node + " i = Cast<to = 1>(a) y = Mul(i, v) }");
  auto& type = *proto.mutable_graph()->mutable_output(0)->mutable_type()->mutable_tensor_type();
  type.clear_shape();
  AddWeight(proto, "k", onnx::TensorProto::UINT8, {7, 6, 3, 3});
  AddWeight(proto, "m", onnx::TensorProto::UINT8, {7, 120});
  return proto;
}

// The sizes are those that ONNX Runtime 1.32 computes on a CPU, which has no QLinearReduceMean.
TEST_CASE("quantized: ONNX Runtime's operators on integers have shapes, and no gradients") {
  struct Row {
    const char* node;
    int64_t bytes;
  };
  for (const Row& row :
       {Row{"QLinearAdd(q, s, z, c, s, z, s, z)", 240},
        Row{"QLinearAdd<channels_last = 1>(q, s, z, c, s, z, s, z)", 240},
        Row{"QLinearMul(c, s, z, q, s, z, s, z)", 240}, Row{"QLinearSigmoid(q, s, z, s, z)", 240},
        Row{"QLinearLeakyRelu<alpha = 0.1>(q, s, z, s, z)", 240},
        Row{"QLinearSoftmax<axis = 1, opset = 13>(q, s, z, s, z)", 240},
        Row{"QLinearGlobalAveragePool(q, s, z, s, z)", 2 * 4},
        Row{"QLinearGlobalAveragePool<channels_last = 1>(q, s, z, s, z)", 2 * 6},
        Row{"QLinearAveragePool<kernel_shape = [2, 2], strides = [2, 2]>(q, s, z, s, z)", 48},
        Row{"QLinearAveragePool<kernel_shape = [3, 4], strides = [3, 4], ceil_mode = 1>"
            "(q, s, z, s, z)",
            2 * 4 * 2 * 2},
        Row{"QLinearAveragePool<kernel_shape = [3, 1], channels_last = 1>(q, s, z, s, z)",
            2 * 2 * 5 * 6},
        Row{"QLinearAveragePool<kernel_shape = [2, 2], strides = [3, 3], pads = [1, 1, 1, 1], "
            "ceil_mode = 1, channels_last = 1>(q, s, z, s, z)",
            2 * 2 * 2 * 6},
        Row{"QLinearConcat<axis = 1>(s, z, q, s, z, q, s, z, q, s, z)", 3 * 240},
        Row{"QLinearReduceMean<axes = [2, 3], keepdims = 0>(q, s, z, s, z)", 2 * 4},
        Row{"QLinearWhere(b, q, s, z, c, s, z, s, z)", 240},
        Row{"QLinearConv<channels_last = 1>(q, s, z, k, s, z, s, z)", 2 * 2 * 3 * 7},
        Row{"NhwcMaxPool<kernel_shape = [2, 2]>(q)", 2 * 3 * 4 * 6},
        Row{"QGemm<transB = 1>(f, s, z, m, s, z, , s, z)", 2 * 7},
        Row{"QGemm<transB = 1>(f, s, z, m, s, z)", 2 * 7 * 4}}) {
    CAPTURE(std::string(row.node));
    const ModelGraph lowered = LowerProto(QuantizedStep(row.node));
    const auto& tensors = lowered.graph.tensors();
    const auto made = std::find_if(tensors.begin(), tensors.end(),
                                   [](const Tensor& tensor) { return tensor.name == "a"; });
    REQUIRE(made != tensors.end());
    CHECK(made->bytes == Bytes(row.bytes));
    CHECK_FALSE(made->requires_grad);
    CHECK(lowered.graph.constants().parameter_gradients == Bytes(4));  // Only "v" is trained.
    CHECK(std::none_of(lowered.warnings.begin(), lowered.warnings.end(), [](const auto& warning) {
      return warning.find("unknown") != std::string::npos;
    }));
  }
}

TEST_CASE("quantized: operators on integers that contradict themselves are refused") {
  for (const char* const node :
       {"QLinearAdd(q, s, z, o, s, z, s, z)", "QLinearConcat<axis = 4>(s, z, q, s, z, q, s, z)",
        "QLinearConcat(s, z, q, s, z)", "QLinearConv(q, s, z, k, s, z, s, z)",
        "QLinearConv<channels_last = 1>(f, s, z, k, s, z, s, z)",
        "QLinearAveragePool<kernel_shape = [9, 9]>(q, s, z, s, z)",
        "QLinearReduceMean<axes = 2>(q, s, z, s, z)", "QGemm(f, s, z, m, s, z)"}) {
    CAPTURE(std::string(node));
    CheckFails(LoadProto(QuantizedStep(node)), ErrorCode::kInvalidInput,
               "invalid operands or attributes");
  }
}

TEST_CASE("quantized: zero points count without a warning, booleans and indices not at all") {
  const ModelGraph lowered = LowerText(
      "g (float[4,2] x) => (float[4,2] y) <float[2] w = {1,2}, uint8 zero = {3}, float s = {0.5}, "
      "bool[2] mask = {1,0}, int64[2] order = {1,0}> "
      "{ a = Mul(x, w) q = QuantizeLinear(a, s, zero) b = DequantizeLinear(q, s, zero) "
      "  c = Where(mask, b, a) y = Gather<axis = 1>(c, order) }");
  CHECK(lowered.graph.constants().parameters == Bytes(2 * 4 + 4 + 1));
  CHECK_FALSE(IsReported(lowered, ""));
}

}  // namespace

// Tests straight-through estimation: where rounding passes gradients on, and where it ends them.

namespace {

ModelGraph Lowered(const std::string& graph, Rounding rounding = Rounding::kStraightThrough,
                   Autograd autograd = Autograd::kMinimal) {
  LoadOptions options;
  options.rounding = rounding;
  return LowerProto(ParseGraph(graph, 21), options, autograd);
}

Bytes GradientsOf(const ModelGraph& lowered) {
  return lowered.graph.constants().parameter_gradients;
}

bool Notes(const ModelGraph& lowered, const std::string& part) {
  return std::any_of(lowered.warnings.begin(), lowered.warnings.end(),
                     [&part](const std::string& warning) {
                       return warning.find("straight through rounding") != std::string::npos &&
                              warning.find(part) != std::string::npos;
                     });
}

const std::string kSmallNetwork = "g (float[4,2] x) => (float[4,2] y) <float[2,2] w = {1,2,3,4}, ";

TEST_CASE("rounding: the weights of a quantized network are trained") {
  for (const char* const rounds :
       {"r = Round(w)", "r = Sign(w)", "r = Floor(w)", "r = Ceil(w)",
        "d = Div(w, s) q = Round(d) r = Mul(q, s)",
        "d = Div(w, s) q = Round(d) c = Clip(q) i = Cast<to = 3>(c) f = Cast<to = 1>(i) "
        "r = Mul(f, s)",
        "q = QuantizeLinear(w, s, z) r = DequantizeLinear(q, s, z)",
        "q = QuantizeLinear(w, s, z) t = Transpose(q) r = DequantizeLinear(t, s, z)"}) {
    CAPTURE(rounds);
    const std::string graph = kSmallNetwork + "float s = {0.5}, int8 z = {0}> { " + rounds +
                              " h = MatMul(x, r) y = Relu(h) }";
    const ModelGraph lowered = Lowered(graph);
    const bool trains_scale = std::string(rounds).find("Mul(") != std::string::npos;
    CHECK(GradientsOf(lowered) == Bytes(16 + (trains_scale ? 4 : 0)));
    CHECK(Notes(lowered, "--rounding no-gradient"));
    CHECK(NamesOf(lowered.graph, NodeOf(lowered.graph, "MatMul").backward_reads) == "x");
    const ModelGraph ended = Lowered(graph, Rounding::kNoGradient);
    CHECK(GradientsOf(ended) == Bytes(trains_scale ? 4 : 0));
    CHECK_FALSE(Notes(ended, ""));
  }
}

TEST_CASE("rounding: what lies before a rounded activation is trained and saved") {
  for (const char* const rounds :
       {"r = Round(a)", "r = Sign(a)", "q = QuantizeLinear(a, s, z) r = DequantizeLinear(q, s, z)",
        "q = QuantizeLinear(a, s, z) t = Reshape(q, shape) r = DequantizeLinear(t, s, z)",
        "q, scale, zero = DynamicQuantizeLinear(a) r = DequantizeLinear(q, scale, zero)",
        "i = Cast<to = 3>(a) r = Cast<to = 1>(i)"}) {
    CAPTURE(rounds);
    for (const Autograd autograd : {Autograd::kMinimal, Autograd::kTorch}) {
      const std::string graph =
          kSmallNetwork +
          "float[2,2] w2 = {1,2,3,4}, float s = {0.5}, uint8 z = {0}, int64[2] shape = "
          "{4,2}> { m = MatMul(x, w) a = Sigmoid(m) " +
          rounds + " y = MatMul(r, w2) }";
      const ModelGraph lowered = Lowered(graph, Rounding::kStraightThrough, autograd);
      CHECK(GradientsOf(lowered) == Bytes(2 * 16));
      CHECK(NamesOf(lowered.graph, NodeOf(lowered.graph, "Sigmoid").backward_reads) == "a");
      CHECK(Notes(lowered, "\""));
      const ModelGraph ended = Lowered(graph, Rounding::kNoGradient, autograd);
      // PyTorch's round() and sign() send zeros to w; integers send nothing.
      const bool has_zero_gradient = std::string(rounds).starts_with("r = ");
      CHECK(GradientsOf(ended) == Bytes(has_zero_gradient ? 2 * 16 : 16));
      CHECK(ended.graph.tensor(ended.graph.outputs()[0]).requires_grad);
      CHECK_FALSE(Notes(ended, ""));
    }
  }
}

TEST_CASE(
    "rounding: the gradient of quantized integers is that of the floats that they stand for") {
  const ModelGraph lowered =
      Lowered(kSmallNetwork +
              "float s = {0.5}, uint8 z = {0}> { m = MatMul(x, w) q = QuantizeLinear(m, s, z) "
              "y = DequantizeLinear(q, s, z) }");
  CHECK(NamesOf(lowered.graph, NodeOf(lowered.graph, "QuantizeLinear").gradient_passthrough) ==
        "m");
  CHECK(NamesOf(lowered.graph, NodeOf(lowered.graph, "DequantizeLinear").gradient_passthrough) ==
        "q");
}

// The exporter drops the detach of x + (q - x).detach(), of which nothing is saved.
TEST_CASE("rounding: an estimate that is detached saves nothing, and needs no note") {
  for (const char* const estimate : {"d = Sub(q, a) r = Add(a, d)", "d = Sub(q, a) r = Add(d, a)",
                                     "d = Sub(a, q) r = Sub(a, d)"}) {
    CAPTURE(estimate);
    const std::string graph =
        kSmallNetwork +
        "float[2,2] w2 = {1,2,3,4}> { a = MatMul(x, w) m = Abs(a) t = ReduceMax(m) "
        "e = Div(a, t) u = Round(e) q = Mul(u, t) " +
        estimate + " y = MatMul(r, w2) }";
    const ModelGraph lowered = Lowered(graph);
    CHECK(GradientsOf(lowered) == Bytes(2 * 16));
    CHECK_FALSE(Notes(lowered, ""));
    for (const char* const op : {"Abs", "ReduceMax", "Div", "Round", "Mul"}) {
      CAPTURE(op);
      CHECK(NodeOf(lowered.graph, op).backward_reads.empty());
      CHECK_FALSE(lowered.graph.tensor(NodeOf(lowered.graph, op).outputs[0]).requires_grad);
    }
  }
}

TEST_CASE("rounding: what nothing trains, and what no gradient reaches, needs no note") {
  CHECK_FALSE(
      Notes(Lowered(kSmallNetwork + "float s = {1}> { r = Round(x) y = MatMul(r, w) }"), ""));
  CHECK_FALSE(Notes(Lowered("g (float[4,2] x) => (float[4,2] y) <float[2,2] w = {1,2,3,4}> "
                            "{ m = MatMul(x, w) r = Floor(m) i = Cast<to = 7>(r) "
                            "e = Greater(r, x) y = Where(e, m, x) }"),
                    ""));
}

}  // namespace

}  // namespace ckplan
