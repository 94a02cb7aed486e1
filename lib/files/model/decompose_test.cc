// Tests that ONNX Runtime's operators become those of ONNX. The sizes of outputs are those that
// ONNX Runtime 1.32 computes on a CPU for the same nodes; uses that its CPU kernels lack are left
// out.
#include <algorithm>
#include <map>

#include "lib/files/model/testing/proto.h"

namespace ckplan {
namespace {

struct Decomposed {
  const char* inputs;
  const char* node;
  const char* ops;                             // After the Mul with a weight before the node.
  std::map<std::string, std::string> outputs;  // By name, as in the text of ONNX.
};

// The bytes of "float[2,6,64]".
int64_t BytesOf(const std::string& shape) {
  int64_t bytes = 4;
  for (size_t at = shape.find('[') + 1; at < shape.size(); at = shape.find_first_of(",]", at) + 1) {
    bytes *= std::stoll(shape.substr(at));
    if (shape.find_first_of(",]", at) == shape.size() - 1) break;
  }
  return bytes;
}

onnx::ModelProto ModelOf(const Decomposed& row, int opset) {
  std::string outputs;
  for (const auto& [name, shape] : row.outputs) {
    outputs += (outputs.empty() ? "float[] " : ", float[] ") + name;
  }
  onnx::ModelProto proto = ParseGraph(std::string("g (") + row.inputs + ") => (" + outputs +
                                          ") <float w = {2}> { x = Mul(x0, w) " + row.node + " }",
                                      opset);
  for (auto& output : *proto.mutable_graph()->mutable_output()) {
    output.mutable_type()->mutable_tensor_type()->clear_shape();
  }
  return proto;
}

void CheckRow(const Decomposed& row, int opset = 17) {
  CAPTURE(row.node);
  const ModelGraph lowered = LowerProto(ModelOf(row, opset));
  std::string ops;
  for (const Node& node : lowered.graph.nodes()) ops += (ops.empty() ? "" : " ") + node.op;
  CHECK(ops == (std::string(row.ops).empty() ? "Mul" : std::string("Mul ") + row.ops));
  CHECK(lowered.warnings.size() <= 1);  // The scalar may not count as a weight.
  for (const auto& output : row.outputs) {
    const auto& name = output.first;
    CAPTURE(name);
    const auto& tensors = lowered.graph.tensors();
    const auto found = std::find_if(tensors.begin(), tensors.end(),
                                    [&](const Tensor& tensor) { return tensor.name == name; });
    REQUIRE(found != tensors.end());
    CHECK(found->bytes.count() == BytesOf(output.second));
  }
}

constexpr const char* kX = "float[2,6,64] x0";

TEST_CASE("decompose: activations, products and normalisations") {
  const std::string norm =
      "float[2,6,64] x0, float[2,6,64] s, float[64] g, float[64] b, float[64] c";
  const Decomposed rows[] = {
      {kX, "y = com.microsoft.Gelu(x)", "Gelu", {{"y", "[2,6,64]"}}},
      {"float[2,6,64] x0, float[64] b",
       "y = com.microsoft.FastGelu(x, b)",
       "Add Gelu",
       {{"y", "[2,6,64]"}}},
      {"float[2,6,64] x0, float[64] b",
       "y = com.microsoft.BiasGelu(x, b)",
       "Add Gelu",
       {{"y", "[2,6,64]"}}},
      {kX, "y = com.microsoft.QuickGelu<alpha = 1.702>(x)", "Swish", {{"y", "[2,6,64]"}}},
      {norm.c_str(),
       "y, m, v, sum = com.microsoft.SkipLayerNormalization(x, s, g, b, c)",
       "Add Add LayerNormalization",
       {{"y", "[2,6,64]"}, {"sum", "[2,6,64]"}}},
      {norm.c_str(),
       "y = com.microsoft.SkipSimplifiedLayerNormalization(x, s, g)",
       "Add RMSNormalization",
       {{"y", "[2,6,64]"}}},
      {norm.c_str(),
       "y = SimplifiedLayerNormalization<axis = -1>(x, g)",
       "RMSNormalization",
       {{"y", "[2,6,64]"}}},
      {"float[2,6,64] x0, float[16,64] m",
       "y = com.microsoft.FusedMatMul<transB = 1, alpha = 0.5>(x, m)",
       "Transpose MatMul Mul",
       {{"y", "[2,6,16]"}}},
      {"float[2,6,64] x0, float[2,6,5] m",
       "y = com.microsoft.FusedMatMul<transA = 1>(x, m)",
       "Transpose MatMul",
       {{"y", "[2,64,5]"}}},
      {"float[6,2,4,16] x0, float[6,2,4,16] m",
       "y = com.microsoft.FusedMatMul<transBatchA = 1, transBatchB = 1, transB = 1>(x, m)",
       "Transpose Transpose MatMul",
       {{"y", "[2,4,6,6]"}}},
      {"float[2,64] x0, float[16,64] m, float[16] b",
       "y = com.microsoft.FusedGemm<transB = 1, activation = \"Relu\">(x, m, b)",
       "Gemm Relu",
       {{"y", "[2,16]"}}},
      {"float[2,3,8,8] x0, float[8,3,3,3] k, float[8] b",
       "y = com.microsoft.FusedConv<kernel_shape = [3, 3], pads = [1, 1, 1, 1], activation = "
       "\"Relu\">(x, k, b)",
       "Conv Relu",
       {{"y", "[2,8,8,8]"}}}};
  for (const Decomposed& row : rows) CheckRow(row);
}

TEST_CASE("decompose: attentions") {
  const std::string qkv = "float[2,6,64] x0, float[2,8,64] k, float[2,8,64] v";
  const std::string grouped =
      "float[2,6,64] x0, float[2,6,32] k, float[2,6,32] v, int32[2] l, "
      "int32 t, float[16,8] cos, float[16,8] sin";
  const Decomposed rows[] = {
      {"float[2,6,64] x0, float[64,192] p, float[192] b",
       "y = com.microsoft.Attention<num_heads = 4>(x, p, b)",
       "MatMul Add Split Attention",
       {{"y", "[2,6,64]"}}},
      {"float[2,6,64] x0, float[64,192] p, float[192] b, int32[2] m",
       "y = com.microsoft.Attention<num_heads = 4>(x, p, b, m)",
       "MatMul Add Split Less Attention",
       {{"y", "[2,6,64]"}}},
      {"float[2,6,64] x0, float[64,192] p",
       "y = com.microsoft.Attention<num_heads = 4, do_rotary = 1, rotary_embedding_dim = 8>(x, p)",
       "MatMul Split RotaryEmbedding RotaryEmbedding Attention",
       {{"y", "[2,6,64]"}}},
      {"float[2,6,64] x0, float[64,192] p, float[192] b, float s, uint8 z, int32[2] m, "
       "float[2,2,4,3,16] past",
       "q = QuantizeLinear(x, s, z) n = QuantizeLinear(p, s, z) y, pr = "
       "com.microsoft.QAttention<num_heads = 4>(q, n, b, s, s, m, z, z, past)",
       "QuantizeLinear QuantizeLinear com.microsoft.MatMulIntegerToFloat Split Split Less "
       "Attention Concat",
       {{"y", "[2,6,64]"}, {"pr", "[2,2,4,9,16]"}}},
      {"float[2,6,64] x0, float[64,192] p, float[192] b, float[2,2,4,3,16] past",
       "y, pr = com.microsoft.Attention<num_heads = 4, unidirectional = 1>(x, p, b, , past)",
       "MatMul Add Split Split Attention Concat",
       {{"y", "[2,6,64]"}, {"pr", "[2,2,4,9,16]"}}},
      {qkv.c_str(),
       "y = com.microsoft.MultiHeadAttention<num_heads = 4>(x, k, v)",
       "Attention",
       {{"y", "[2,6,64]"}}},
      {"float[2,6,64] x0, float[2,6,64] k, float[2,6,64] v, float[2,4,3,16] pk, float[2,4,3,16] pv",
       "y, ok, ov = com.microsoft.MultiHeadAttention<num_heads = 4>(x, k, v, , , , pk, pv)",
       "Attention",
       {{"y", "[2,6,64]"}, {"ok", "[2,4,9,16]"}, {"ov", "[2,4,9,16]"}}},
      {grouped.c_str(),
       "y, ok, ov = com.microsoft.GroupQueryAttention<num_heads = 4, kv_num_heads = 2, do_rotary = "
       "1>(x, k, v, , , l, t, cos, sin)",
       "Slice Expand Slice Expand RotaryEmbedding RotaryEmbedding Transpose Transpose Attention",
       {{"y", "[2,6,64]"}, {"ok", "[2,2,6,16]"}, {"ov", "[2,2,6,16]"}}},
      {"float[2,6,64] x0, int64[2,6] p, float[16,8] cos, float[16,8] sin",
       "y = com.microsoft.RotaryEmbedding(x, p, cos, sin)",
       "RotaryEmbedding",
       {{"y", "[2,6,64]"}}}};
  for (const Decomposed& row : rows) CheckRow(row);
}

TEST_CASE("decompose: what ONNX Runtime quantizes beside attention") {
  CheckRow(
      {"float[2,6,64] x0, int32[2,6] i, uint8[30,64] t, uint8[9,64] p, uint8[64] g, float s, "
       "uint8 z",
       "e = com.microsoft.QEmbedLayerNormalization(i, , t, p, , g, g, , s, s, , s, s, z, z, , "
       "z, z) y = Add(e, x)",
       "DequantizeLinear Gather DequantizeLinear Slice Add DequantizeLinear DequantizeLinear "
       "LayerNormalization Add",
       {{"y", "[2,6,64]"}}});
  CheckRow({"float[6,2,64] x0, int8[1,64,20] n, int8[1,5,20] r, float[1] s, int8[1] z",
            "a, h = com.microsoft.DynamicQuantizeLSTM<hidden_size = 5>(x, n, r, , , , , , s, z, s, "
            "z) g = ReduceSum<keepdims = 0>(x) y = Add(a, g) k = Add(h, g)",
            "com.microsoft.DynamicQuantizeLSTM ReduceSum Add Add",
            {{"k", "[1,2,5]"}, {"y", "[6,1,2,5]"}}});
}

TEST_CASE("decompose: masks of attention in all of ONNX Runtime's forms") {
  const std::string packed = "float[2,6,64] x0, float[64,192] p, float[192] b, ";
  const std::string qkv = "float[2,6,64] x0, float[2,8,64] k, float[2,8,64] v, ";
  const std::string attention = "y = com.microsoft.Attention<num_heads = 4>";
  const std::string heads = "y = com.microsoft.MultiHeadAttention<num_heads = 4>";
  struct Row {
    std::string inputs, node;
    const char* ops;
  };
  for (const Row& row :
       {Row{packed + "int32[2,6] m", attention + "(x, p, b, m)", "MatMul Add Split Cast Attention"},
        Row{packed + "int32[2,6,6] m", attention + "(x, p, b, m)",
            "MatMul Add Split Cast Attention"},
        Row{packed + "int32[4] m", attention + "(x, p, b, m)",
            "MatMul Add Split Slice Less Slice GreaterOrEqual And Attention"},
        Row{packed + "int32[2,1,8,8] m", attention + "(x, p, b, m)",
            "MatMul Add Split Slice Cast Attention"},
        Row{packed + "float[1,1,6,6] a", attention + "(x, p, b, , , a)",
            "MatMul Add Split Attention"},
        Row{packed + "int32[2,6] m, float[2,4,6,6] a", attention + "(x, p, b, m, , a)",
            "MatMul Add Split Cast Where Attention"},
        Row{qkv + "int32[2] m", heads + "(x, k, v, , m)", "Less Attention"},
        Row{qkv + "int32[8] m", heads + "(x, k, v, , m)", "Slice Less Attention"},
        Row{qkv + "int32[2,8] m, float[1,4,6,8] a", heads + "(x, k, v, , m, a)",
            "Cast Where Attention"}}) {
    CheckRow({row.inputs.c_str(), row.node.c_str(), row.ops, {{"y", "[2,6,64]"}}});
  }
}

TEST_CASE("decompose: caches of attention grow, or are buffers that keep their size") {
  const std::string one =
      "float[2,1,64] x0, float[2,1,32] k, float[2,1,32] v, int32[2] l, "
      "float[2,2,16,16] pk, float[2,2,16,16] pv";
  const std::string grouped = "com.microsoft.GroupQueryAttention<num_heads = 4, kv_num_heads = 2>";
  // Without the number of tokens so far, the past is full.
  CheckRow({(one + ", int32 t").c_str(),
            ("y, ok, ov = " + grouped + "(x, k, v, pk, pv, l, t)").c_str(),
            "Attention",
            {{"y", "[2,1,64]"}, {"ok", "[2,2,17,16]"}, {"ov", "[2,2,17,16]"}}});
  CheckRow({one.c_str(),
            ("t = Constant<value_int = 4>() t32 = Cast<to = 6>(t) z, ok, ov = " + grouped +
             "(x, k, v, pk, pv, l, t32) y = Relu(z)")
                .c_str(),
            "Cast Add Sub TensorScatter TensorScatter Attention Relu",
            {{"y", "[2,1,64]"}, {"ok", "[2,2,16,16]"}, {"ov", "[2,2,16,16]"}}});
  CheckRow(
      {"float[2,1,64] x0, float[2,1,64] k, float[2,1,64] v, float[2,4,16,16] pk, "
       "float[2,4,16,16] pv, int32[1] t",
       "z, ok, ov = com.microsoft.MultiHeadAttention<num_heads = 4>(x, k, v, , , , pk, pv, t) "
       "y = Relu(z)",
       "Cast Expand Add TensorScatter TensorScatter Attention Relu",
       {{"y", "[2,1,64]"}, {"ok", "[2,4,16,16]"}, {"ov", "[2,4,16,16]"}}});
  CheckRow({"float[2,6,64] x0, float[2,8,64] k, float[2,8,64] v",
            "y, ok, ov, qk = com.microsoft.MultiHeadAttention<num_heads = 4>(x, k, v)",
            "Transpose Transpose Attention",
            {{"y", "[2,6,64]"}, {"ok", "[2,4,8,16]"}, {"ov", "[2,4,8,16]"}, {"qk", "[2,4,6,8]"}}});
  // Only GPUs run this form; the shape is that of ONNX Runtime's documentation.
  CheckRow({"float[2,6,64] x0, float[2,8,4,2,16] k",
            "y = com.microsoft.MultiHeadAttention<num_heads = 4>(x, k)",
            "Split Attention",
            {{"y", "[2,6,64]"}}});
}

TEST_CASE("decompose: operators newer than the file's set, and products that have a row") {
  const Decomposed norm = {"float[2,6,64] x0, float[64] g, float[64] b",
                           "y = LayerNormalization<axis = -1>(x, g, b)",
                           "LayerNormalization",
                           {{"y", "[2,6,64]"}}};
  CheckRow(norm, 12);
  CheckRow({"float[2,6,64] x0, uint8[16,4,8] q, float[64] s",
            "y = com.microsoft.MatMulNBits<K = 64, N = 16, bits = 4, block_size = 16>(x, q, s)",
            "com.microsoft.MatMulNBits",
            {{"y", "[2,6,16]"}}});
}

TEST_CASE("decompose: what contradicts itself is refused, declared or not") {
  const Decomposed rows[] = {
      {"float[2,6,64] x0, float[64,192] p, float[192] b",
       "y = com.microsoft.Attention<num_heads = 0>(x, p, b)",
       "attribute num_heads is 0; it must be at least 1",
       {{"y", "[1]"}}},
      {"float[2,6,64] x0, float[64,190] p, float[190] b",
       "y = com.microsoft.Attention<num_heads = 4>(x, p, b)",
       "190 columns",
       {{"y", "[1]"}}},
      {"float[2,6,64] x0, float[2,6,64] k, float[2,6,64] v, float[5,4,3,16] pk, float[5,4,3,16] pv",
       "y, ok, ov = com.microsoft.MultiHeadAttention<num_heads = 4>(x, k, v, , , , pk, pv)",
       "its past keys or values is [5,4,3,16] instead of [2,4,3,16]",
       {{"y", "[1]"}}},
      {"float[2,6,64] x0, uint8[16,4,8] q, float[64] s",
       "y = com.microsoft.MatMulNBits<K = 64, N = -32, bits = 4, block_size = 16>(x, q, s)",
       "attribute N is -32",
       {{"y", "[1]"}}},
      {"float[2,6,64] x0, float[64] s",
       "y = com.microsoft.MatMulNBits<K = 64, N = 16, bits = 4, block_size = 16>(x, , s)",
       "input 1 is missing",
       {{"y", "[1]"}}},
      {"float[2,32] x0, int8[31,8] q, float s",
       "y = com.microsoft.DynamicQuantizeMatMul(x, q, s)",
       "[2,32] and [31,8], which cannot be multiplied",
       {{"y", "[1]"}}}};
  for (const Decomposed& row : rows) {
    CAPTURE(row.node);
    onnx::ModelProto proto = ModelOf(row, 17);
    CheckFails(LoadProto(proto), ErrorCode::kInvalidInput, row.ops);
    auto& type = *proto.mutable_graph()->mutable_output(0)->mutable_type()->mutable_tensor_type();
    type.mutable_shape()->add_dim()->set_dim_value(2);
    CheckFails(LoadProto(proto), ErrorCode::kInvalidInput, row.ops);
    // Nothing that leads to no output refuses a model.
    onnx::NodeProto& end = *proto.mutable_graph()->add_node();
    end.set_op_type("Relu");
    end.add_input("x");
    end.add_output("end");
    LoadOptions options;
    options.outputs = {"end"};
    CHECK(LoadProto(proto, options).ok());
  }
}

TEST_CASE("decompose: the columns of a packed weight are those of the shape that is given for it") {
  CheckRow({"float[2,64] x0, uint8[512] q",
            "shape = Constant<value_ints = [64, 16]>() y = com.microsoft.MatMulFpQ4(x, q, shape)",
            "com.microsoft.MatMulFpQ4",
            {{"y", "[2,16]"}}});
}

TEST_CASE("decompose: a cross entropy with probabilities instead of labels") {
  const auto check = [](const std::string& reduction, const std::string& labels,
                        const std::string& operators, int64_t elements) {
    CAPTURE(reduction);
    const ModelGraph lowered =
        LowerProto(ParseGraph("g (float[2,6] x0, " + labels +
                              " p) => (float[] y) <float w = {2}> { x = Mul(x0, w) y = "
                              "SoftmaxCrossEntropyLoss" +
                              reduction + "(x, p) }"));
    std::string ops;
    for (const Node& node : lowered.graph.nodes()) ops += " " + node.op;
    CHECK(ops == " Mul" + operators);
    CHECK(lowered.graph.tensor(lowered.graph.outputs()[0]).bytes == Bytes(4 * elements));
  };
  check("", "float[2,6]", " LogSoftmax Mul ReduceSum Neg Div", 1);
  check("<reduction = \"sum\">", "float[2,6]", " LogSoftmax Mul ReduceSum Neg", 1);
  check("<reduction = \"none\">", "float[2,6]", " LogSoftmax Mul ReduceSum Neg", 2);
  check("", "int64[2]", " SoftmaxCrossEntropyLoss", 1);
}

// ONNX Runtime 1.32 returns [1,12] for a list, and keeps all axes of others but the last.
TEST_CASE("decompose: the columns that scikit-learn's models take") {
  const auto sizes = [](const std::string& features, const std::string& columns) {
    const ModelGraph lowered = LowerProto(
        ParseText("<ir_version: 10, opset_import: [\"\" : 20, \"ai.onnx.ml\" : 1]> g (float[" +
                  features + "] x) => (float[a,b] y) <float w = {2}, " + columns +
                  "> { m = Mul(x, w) y = ai.onnx.ml.ArrayFeatureExtractor(m, c) }"));
    CHECK(NodeOf(lowered.graph, "Gather").backward_reads.empty());
    return lowered.graph.tensor(lowered.graph.outputs()[0]).bytes.count() / 4;
  };
  CHECK(sizes("6,5", "int64[1,3] c = {4,0,1}") == 6 * 3);
  CHECK(sizes("6,5", "int64 c = {4}") == 6);
  CHECK(sizes("5", "int64[2,2] c = {4,0,1,1}") == 4);
}

TEST_CASE("decompose: what a GroupQueryAttention assumes is said") {
  const auto warnings = [](const std::string& operands, std::vector<std::string> sets) {
    const onnx::ModelProto proto = ParseGraph(
        "g (float[1,2,64] x0, float[1,2,32] k, float[1,2,32] v, float[1,2,8,16] pk, "
        "float[1,2,8,16] pv, int32[1] l, int64 total) => (float[1,2,64] y) <float w = {2}, "
        "float[4] "
        "sink = {0,0,0,0}> { x = Mul(x0, w) t = Cast<to = 6>(total) y = "
        "com.microsoft.GroupQueryAttention<num_heads = 4, kv_num_heads = 2>(" +
        operands + ") }");
    LoadOptions options;
    options.set_inputs = std::move(sets);
    const Result<Model> model = LoadProto(proto, options);
    REQUIRE_MESSAGE(model.ok(), model.error().message);
    std::string all;
    for (const std::string& warning : model->warnings()) all += warning + "\n";
    return all;
  };
  const auto has = [](const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
  };
  const std::string cached = "x, k, v, pk, pv, l, t";
  CHECK(has(
      warnings(cached, {}),
      "GroupQueryAttention: its cache is planned to grow by the new tokens, not as a buffer for "
      "them; choose with --set total=..."));
  CHECK_FALSE(has(warnings(cached, {"total=8"}), "its cache"));
  CHECK_FALSE(has(warnings("x, k, v, , , l, t", {}), "its cache"));
  CHECK(has(warnings("x, k, v, , , l, t, , , , , sink", {}), "without the sink of its softmax"));
}

TEST_CASE("decompose: a use without such a form stays an unknown operator") {
  const Decomposed row = {"float[2,64] x0, float[64,16] m",
                          "y = com.microsoft.FusedGemm<activation = \"Sine\">(x, m)",
                          "",
                          {{"y", "[1]"}}};
  CheckFails(LoadProto(ModelOf(row, 17)), ErrorCode::kInvalidInput, "FusedGemm of com.microsoft");
}

}  // namespace
}  // namespace ckplan
