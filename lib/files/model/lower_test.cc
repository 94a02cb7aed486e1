// Tests which tensors, nodes and backward reads a model has: one fact of the table in docs at a
// time.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <ctime>
#include <functional>

#include "lib/files/model/model_impl.h"
#include "lib/files/model/testing/proto.h"
#include "lib/problem/graph/tensor_graph.h"

namespace ckplan {
namespace {

// Returns the reads of the only node with that operator.
std::string ReadsOf(const std::string& graph, const std::string& op,
                    Autograd autograd = Autograd::kMinimal) {
  const ModelGraph lowered = LowerText(graph, {}, autograd);
  return NamesOf(lowered.graph, NodeOf(lowered.graph, op).backward_reads);
}

Bytes StatisticOf(const std::string& graph, const std::string& op,
                  Autograd autograd = Autograd::kMinimal) {
  const ModelGraph lowered = LowerText(graph, {}, autograd);
  const Node& node = NodeOf(lowered.graph, op);
  const Tensor& last = lowered.graph.tensor(node.outputs.back());
  REQUIRE(last.kind == TensorKind::kStatistic);
  CHECK_FALSE(last.requires_grad);
  return last.bytes;
}

// x first passes a trained scale that gives h, so that later values need a gradient.
std::string AfterScale(const std::string& body, const std::string& more = "") {
  return "g (float[4,6,8,8] x) => (float[A,B,C,D] y) <float[6,1,1] w = {1,2,3,4,5,6}" + more +
         "> { h = Mul(x, w) " + body + " }";
}

TEST_CASE("lower: each operator's backward reads the minimum that its kernel needs") {
  struct Row {
    const char* op;
    const char* body;
    const char* minimal;
    const char* torch;
  };
  const Row rows[] = {
      {"Relu", "y = Relu(h)", "y", "y"},
      {"LeakyRelu", "y = LeakyRelu(h)", "y", "h"},
      {"Sigmoid", "y = Sigmoid(h)", "y", "y"},
      {"Gelu", "y = Gelu(h)", "h", "h"},
      {"HardSwish", "y = HardSwish(h)", "h", "h"},
      {"Neg", "y = Neg(h)", "", ""},
      {"Add", "y = Add(h, x)", "", ""},
      {"Div", "y = Div(x, h)", "h y", "x h"},
      {"Pow", "two = Constant<value = float {2.0}>() y = Pow(h, two)", "h", "h"},
      {"Softmax", "y = Softmax(h)", "y", "y"},
      {"AveragePool", "y = AveragePool<kernel_shape = [2,2]>(h)", "", "h"},
      {"GlobalAveragePool", "y = GlobalAveragePool(h)", "", ""},
      {"MaxPool", "y = MaxPool<kernel_shape = [2,2]>(h)", "MaxPool:y:indices",
       "h MaxPool:y:indices"},
      {"LRN", "y = LRN<size = 3>(h)", "h y", "h y"},
      {"ReduceMean", "y = ReduceMean(h)", "", ""},
      {"ReduceMax", "y = ReduceMax(h)", "h y", "h y"},
      {"Transpose", "y = Transpose<perm = [1,0,2,3]>(h)", "", ""},
      {"Concat", "y = Concat<axis = 1>(h, x)", "", ""},
      {"Max", "y = Max(h, x)", "h x", "h x"},
      {"Dropout", "y = Dropout(h)", "", "Dropout:y:mask"},
      {"Resize", "s = Constant<value = float[4] {1.0, 1.0, 2.0, 2.0}>() y = Resize(h, , s)", "",
       ""},
  };
  for (const Row& row : rows) {
    CAPTURE(row.op);
    CHECK(ReadsOf(AfterScale(row.body), row.op) == row.minimal);
    CHECK(ReadsOf(AfterScale(row.body), row.op, Autograd::kTorch) == row.torch);
  }
}

TEST_CASE("lower: an operand is read only if its partner needs a gradient") {
  // h needs a gradient, x does not: d(x h)/dh needs x, and d(x h)/dx is not computed.
  CHECK(ReadsOf("g (float[4] x) => (float[4] y) <float[4] w = {1,2,3,4}> "
                "{ h = Add(x, w) y = Mul(x, h) }",
                "Mul") == "x");
  CHECK(ReadsOf("g (float[4] x) => (float[4] y) <float[4] w = {1,2,3,4}> "
                "{ h = Add(x, w) y = Mul(h, h) }",
                "Mul") == "h");
  // A plain number is not a parameter: scaling reads nothing.
  CHECK(ReadsOf("g (float[4] x) => (float[4] y) <float[4] w = {1,2,3,4}> "
                "{ s = Constant<value = float {0.5}>() h = Add(x, w) y = Mul(h, s) }",
                "Mul") == "");
}

TEST_CASE("lower: a node that depends on no parameter has no gradient and reads nothing") {
  const ModelGraph lowered = LowerText(
      "g (float[4] x) => (float[4] y) <float[4] w = {1,2,3,4}> "
      "{ s = Constant<value = float {0.5}>() a = Mul(x, s) b = Sigmoid(a) y = Mul(b, w) }");
  const Node& sigmoid = NodeOf(lowered.graph, "Sigmoid");
  CHECK(sigmoid.backward_reads.empty());
  CHECK(sigmoid.backward_cost == Cost(0));
  CHECK_FALSE(lowered.graph.tensor(sigmoid.outputs[0]).requires_grad);
  CHECK(NamesOf(lowered.graph, lowered.graph.node(NodeId(2)).backward_reads) == "b");
}

TEST_CASE("lower: views are not nodes, their results are their input's tensor") {
  const ModelGraph lowered = LowerText(
      "g (float[2,3,4] x) => (float[A] y) <float[4] w = {1,2,3,4}, int64[1] all = {-1}, "
      "int64[1] axis = {0}, int64[3] same = {2,3,4}, float no = {0.0}> {"
      "  h = Add(x, w) a = Identity(h) b = Unsqueeze(a, axis) c = Squeeze(b, axis)"
      "  d = Cast<to = 1>(c) e = Expand(d, same) f = Dropout(e, no) t = Transpose<perm=[0,1,2]>(f)"
      "  r = Relu(t) q = Flatten(r) y = Reshape(q, all) }");
  CHECK(lowered.graph.nodes().size() == 2);
  const Node& relu = NodeOf(lowered.graph, "Relu");
  CHECK(NamesOf(lowered.graph, relu.inputs) == "h");
  CHECK(NamesOf(lowered.graph, lowered.graph.outputs()) == "r");
  REQUIRE(lowered.roles.size() == 11);
  CHECK(lowered.roles[0].role == NodeRole::kNode);
  for (const size_t view : {1, 2, 3, 4, 5, 6, 7, 9, 10}) {
    CAPTURE(view);
    CHECK(lowered.roles[view].role == NodeRole::kView);
  }
}

TEST_CASE("lower: movements that move something are nodes") {
  for (const char* body : {"y = Transpose<perm = [0,1,3,2]>(h)", "y = Cast<to = 10>(h)",
                           "y = Concat<axis = 0>(h, h)"}) {
    CAPTURE(body);
    CHECK(LowerText(AfterScale(body)).graph.nodes().size() == 2);
  }
  // A full slice is the tensor itself; a reversed one of the same shape is not.
  const std::string ends =
      ", int64[1] from = {-1}, int64[1] to = {-100}, int64[1] axis = {3}, int64[1] step = {-1}"
      ", int64[1] zero = {0}, int64[1] eight = {8}";
  CHECK(LowerText(AfterScale("y = Slice(h, from, to, axis, step)", ends)).graph.nodes().size() ==
        2);
  CHECK(LowerText(AfterScale("r = Slice(h, zero, eight, axis) y = Relu(r)", ends))
            .graph.nodes()
            .size() == 2);
}

TEST_CASE("lower: saved statistics have their real sizes") {
  CHECK(StatisticOf(AfterScale("y = MaxPool<kernel_shape = [2,2]>(h)"), "MaxPool") ==
        Bytes(4 * 6 * 7 * 7 * 4));
  CHECK(StatisticOf(AfterScale("y = MaxPool<kernel_shape = [2,2]>(h)"), "MaxPool",
                    Autograd::kTorch) == Bytes(4 * 6 * 7 * 7 * 8));
  CHECK(StatisticOf(AfterScale("y = Dropout(h)"), "Dropout", Autograd::kTorch) ==
        Bytes(4 * 6 * 8 * 8 * 4));
  const std::string norm = ", float[6] s = {1,1,1,1,1,1}, float[8] r = {1,1,1,1,1,1,1,1}";
  CHECK(StatisticOf(AfterScale("y = BatchNormalization(h, s, s, s, s)", norm),
                    "BatchNormalization") == Bytes(6 * 8));
  CHECK(StatisticOf(AfterScale("y = InstanceNormalization(h, s, s)", norm),
                    "InstanceNormalization") == Bytes(4 * 6 * 8));
  CHECK(StatisticOf(AfterScale("y = LayerNormalization(h, r)", norm), "LayerNormalization") ==
        Bytes(4 * 6 * 8 * 8));
}

TEST_CASE("lower: max pooling's own indices are used if the graph has them") {
  const ModelGraph lowered = LowerText(
      "g (float[4,6,8,8] x) => (float[4,6,7,7] y, float[4,6,8,8] z) <float[6,1,1] w = "
      "{1,2,3,4,5,6}> "
      "{ h = Mul(x, w) y, i = MaxPool<kernel_shape = [2,2]>(h) "
      "  z = MaxUnpool<kernel_shape = [2,2]>(y, i) }");
  const Node& pool = NodeOf(lowered.graph, "MaxPool");
  CHECK(NamesOf(lowered.graph, pool.outputs) == "y i");
  CHECK(NamesOf(lowered.graph, pool.backward_reads) == "i");
  CHECK(NamesOf(lowered.graph, NodeOf(lowered.graph, "MaxUnpool").backward_reads) == "i");
}

TEST_CASE("lower: a pool rounds up as runtimes do, without a window in the padding, in any set") {
  // The last window of a stride would begin after the input: PyTorch and ONNX Runtime drop it.
  struct Row {
    const char* attributes;
    int64_t size;
    int64_t expected;
  };
  const Row rows[] = {
      {"kernel_shape = [3,3], strides = [3,3], pads = [1,1,1,1]", 2, 1},
      {"kernel_shape = [2,2], strides = [2,2], pads = [1,1,1,1]", 3, 2},
      {"kernel_shape = [3,3], strides = [2,2]", 8, 4},
      {"kernel_shape = [3,3], strides = [2,2], pads = [0,0,1,1]", 8, 4},
      {"kernel_shape = [2,2], strides = [3,3], auto_pad = \"SAME_UPPER\"", 7, 3},
      {"kernel_shape = [1,1], strides = [3,3], auto_pad = \"SAME_LOWER\"", 6, 2},
  };
  for (const int opset : {11, 20, 22}) {
    for (const char* const type : {"AveragePool", "MaxPool", "LpPool"}) {
      for (const Row& row : rows) {
        if (opset < 18 && std::string(type) == "LpPool") continue;  // It has no ceil_mode.
        CAPTURE(opset);
        CAPTURE(type);
        CAPTURE(row.attributes);
        const std::string graph = fmt::format(
            "g (float[1,1,{0},{0}] x) => (float[a,b,c,d] y) {{ y = {1}<ceil_mode = 1, "
            "{2}>(x) }}",
            row.size, type, row.attributes);
        onnx::ModelProto proto = ParseGraph(graph, opset);
        proto.mutable_graph()
            ->mutable_output(0)
            ->mutable_type()
            ->mutable_tensor_type()
            ->clear_shape();
        const TensorGraph lowered = LowerProto(proto).graph;
        CHECK(lowered.tensor(lowered.outputs()[0]).bytes == Bytes(row.expected * row.expected * 4));
      }
    }
  }
}

TEST_CASE("lower: an LSTM saves gates and cells, and its states if no output holds them") {
  const std::string all = "g (float[7,3,5] x) => (float[A,B,C,D] z) ";
  onnx::ModelProto proto;
  for (const bool uses_all : {true, false}) {
    std::string text = all + "{ y, last = LSTM<hidden_size = 8>(x, w, r) z = Relu(" +
                       std::string(uses_all ? "y" : "last") + ") }";
    proto = ParseGraph(text);
    for (const auto& [name, dims] :
         {std::pair{"w", Dims{1, 32, 5}}, std::pair{"r", Dims{1, 32, 8}}}) {
      auto* tensor = proto.mutable_graph()->add_initializer();
      tensor->set_name(name);
      tensor->set_data_type(onnx::TensorProto::FLOAT);
      for (const int64_t dim : dims) tensor->add_dims(dim);
      tensor->set_data_location(onnx::TensorProto::EXTERNAL);
    }
    const ModelGraph lowered = LowerProto(proto);
    const Node& lstm = NodeOf(lowered.graph, "LSTM");
    CAPTURE(uses_all);
    CHECK(lowered.graph.tensor(lstm.outputs.back()).bytes ==
          Bytes(7 * 3 * 8 * (uses_all ? 5 : 6) * 4));
    CHECK(NamesOf(lowered.graph, lstm.backward_reads) ==
          (uses_all ? "x y LSTM:y:reserve" : "x LSTM:y:reserve"));
    CHECK(lowered.graph.constants().parameters == Bytes((32 * 5 + 32 * 8) * 4));
  }
}

TEST_CASE("lower: attention saves probabilities, or with torch the logarithms of their sums") {
  const char* graph =
      "g (float[2,4,10,16] q, float[2,4,12,16] k, float[2,4,12,16] v) => (float[2,4,10,16] y) "
      "<float[16] w = {1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16}> "
      "{ a = Mul(q, w) b = Mul(k, w) c = Mul(v, w) y = Attention(a, b, c) }";
  const onnx::ModelProto proto = ParseGraph(graph, 23);
  const ModelGraph minimal = LowerProto(proto);
  const Node& node = NodeOf(minimal.graph, "Attention");
  CHECK(NamesOf(minimal.graph, node.backward_reads) == "a b c Attention:y:probabilities");
  CHECK(minimal.graph.tensor(node.outputs.back()).bytes == Bytes(2 * 4 * 10 * 12 * 4));
  const ModelGraph torch = LowerProto(proto, {}, Autograd::kTorch);
  const Node& flash = NodeOf(torch.graph, "Attention");
  CHECK(NamesOf(torch.graph, flash.backward_reads) == "a b c y Attention:y:logsumexp");
  CHECK(torch.graph.tensor(flash.outputs.back()).bytes == Bytes(2 * 4 * 10 * 4));
}

TEST_CASE("lower: a constant that gives only its type to another is no parameter") {
  const ModelGraph lowered = LowerText(
      "g (float[2,3] x) => (float[2,3] y) <float[3] s = {1,2,3}, float[5] other = {1,2,3,4,5}> "
      "{ t = CastLike(s, other) u = CastLike(t, x) y = Mul(x, u) }");
  CHECK(lowered.graph.constants().parameters == Bytes(3 * 4));
  CHECK(lowered.graph.constants().parameter_gradients == Bytes(3 * 4));
}

TEST_CASE("lower: a batch normalisation for inference is trained; its updates are not tensors") {
  const ModelGraph lowered = LowerText(
      "g (float[2,3] x) => (float[2,3] y, float[3] m, float[3] v) "
      "<float[3] s = {1,1,1}, float[3] b = {0,0,0}, float[3] mean = {0,0,0}, float[3] var = "
      "{1,1,1}> "
      "{ y, m, v = BatchNormalization<training_mode = 1>(x, s, b, mean, var) }");
  CHECK(NamesOf(lowered.graph, lowered.graph.outputs()) == "y");
  const Node& node = NodeOf(lowered.graph, "BatchNormalization");
  CHECK(NamesOf(lowered.graph, node.outputs) == "y BatchNormalization:y:moments");
  CHECK(lowered.graph.constants().parameters == Bytes(4 * 3 * 4));
  CHECK(lowered.graph.constants().parameter_gradients == Bytes(2 * 3 * 4));
}

TEST_CASE("lower: dropout is random, its default ratio is a half, in any operator set") {
  for (const int opset : {7, 12, 20}) {
    const ModelGraph lowered =
        LowerProto(ParseGraph("g (float[4] x) => (float[4] y) <float[4] w = {1,2,3,4}> "
                              "{ h = Mul(x, w) y = Dropout(h) }",
                              opset));
    CAPTURE(opset);
    CHECK(NodeOf(lowered.graph, "Dropout").is_random);
  }
}

TEST_CASE("lower: a dropout's mask is a float before opset 10, and gets no gradient") {
  for (const bool is_float : {true, false}) {
    const std::string read = is_float ? "Identity(k)" : "Cast<to = 1>(k)";
    const ModelGraph lowered =
        LowerProto(ParseGraph("g (float[4] x) => (float[4] y) <float[4] w = {1,2,3,4}> "
                              "{ h = Mul(x, w) d, k = Dropout(h) m = " +
                                  read + " y = Add(d, m) }",
                              is_float ? 9 : 10));
    CAPTURE(is_float);
    const Tensor& mask = lowered.graph.tensor(NodeOf(lowered.graph, "Dropout").outputs.at(1));
    CHECK(mask.bytes == Bytes(is_float ? 16 : 4));
    CHECK(!mask.requires_grad);
  }
}

TEST_CASE("lower: random numbers and values made from them are tensors without gradient") {
  const ModelGraph lowered = LowerText(
      "g (float[4] x) => (float[4] y) <float[4] w = {1,2,3,4}, float p = {0.8}> "
      "{ h = Mul(x, w) u = RandomUniformLike(h) k = Less(u, p) m = Cast<to = 1>(k) y = Mul(h, m) "
      "}");
  const Node& random = NodeOf(lowered.graph, "RandomUniformLike");
  CHECK(random.is_random);
  CHECK(random.inputs.empty());
  const Node& cast = NodeOf(lowered.graph, "Cast");
  CHECK_FALSE(lowered.graph.tensor(cast.outputs[0]).requires_grad);
  CHECK(NamesOf(lowered.graph, lowered.graph.node(NodeId(4)).backward_reads) == "m");
}

TEST_CASE("lower: additions pass gradients on and write in place if shapes are equal") {
  const ModelGraph lowered = LowerText(
      "g (float[2,4] x) => (float[2,4] z) <float[4] w = {1,2,3,4}, int64[1] axis = {0}> "
      "{ h = Mul(x, w) row = ReduceSum<keepdims = 1>(h, axis) y = Add(h, row) z = Sub(y, h) }");
  const TensorGraph& graph = lowered.graph;
  const Node& mul = NodeOf(graph, "Mul");
  CHECK(mul.in_place.empty());  // A tensor given from outside stays as it is.
  const Node& add = NodeOf(graph, "Add");
  CHECK(NamesOf(graph, add.gradient_passthrough) == "h");
  REQUIRE(add.in_place.size() == 1);
  CHECK(graph.tensor(add.in_place[0].input).name == "h");
  const Node& sub = NodeOf(graph, "Sub");
  CHECK(NamesOf(graph, sub.gradient_passthrough) == "y");
  CHECK(sub.in_place.size() == 2);
}

TEST_CASE("lower: weights are found through casts, transposes and constant arithmetic") {
  const ModelGraph lowered = LowerText(
      "g (float[2,3] x) => (float[2,4] y) "
      "<float16[4,3] w = {1,2,3,4,5,6,7,8,9,10,11,12}, float[4] b = {1,2,3,4}, float s = {0.5}> "
      "{ c = Cast<to = 1>(w) t = Transpose(c) n = Mul(t, s) h = MatMul(x, n) y = Add(h, b) }");
  CHECK(lowered.graph.nodes().size() == 2);
  CHECK(NamesOf(lowered.graph, NodeOf(lowered.graph, "MatMul").backward_reads) == "x");
  // The half precision weights, the bias, and the scalar that scales the weights.
  CHECK(lowered.graph.constants().parameters == Bytes(12 * 2 + 4 * 4 + 4));
  CHECK(lowered.roles[0].role == NodeRole::kConstant);
}

TEST_CASE("lower: weights that are Constant or ConstantOfShape nodes are found") {
  const ModelGraph lowered = LowerText(
      "g (float[2,3] x) => (float[2,4] y) <int64[2] shape = {3,4}> "
      "{ w = ConstantOfShape<value = float[1] {0.5}>(shape) b = Constant<value = float[4] "
      "{1.0,2.0,3.0,4.0}>()"
      "  h = MatMul(x, w) y = Add(h, b) }");
  CHECK(lowered.graph.constants().parameters == Bytes((12 + 4) * 4));
  CHECK(lowered.graph.constants().parameter_gradients == Bytes((12 + 4) * 4));
}

TEST_CASE("lower: gradients of parameters are those of the last node that trains them") {
  // h and y train w, the former by its transpose; b is the bias of one node only.
  const ModelGraph lowered = LowerText(
      "g (float[2,3] x) => (float[2,3] y) <float[4,3] w = {1,2,3,4,5,6,7,8,9,10,11,12}, "
      "float[4] b = {1,2,3,4}> "
      "{ t = Transpose(w) h = MatMul(x, t) a = Add(h, b) y = MatMul(a, w) }");
  const IdVector<NodeId, Node>& nodes = lowered.graph.nodes();
  REQUIRE(nodes.size() == 3);
  CHECK(nodes[NodeId(0)].parameter_gradients == Bytes(0));
  CHECK(nodes[NodeId(1)].parameter_gradients == Bytes(4 * 4));
  CHECK(nodes[NodeId(2)].parameter_gradients == Bytes(12 * 4));
  CHECK(lowered.graph.constants().parameter_gradients == Bytes(16 * 4));
}

TEST_CASE("lower: masks and plain numbers in the file are not parameters") {
  const ModelGraph lowered = LowerText(
      "g (float[2,2] x) => (float[2,2] y) <float[2] w = {1,2}> "
      "{ s = Constant<value = float {0.5}>() mask = Constant<value = float[2,2] "
      "{0.0,-100.0,0.0,0.0}>()"
      "  h = Mul(x, w) a = Add(h, mask) y = Mul(a, s) }");
  CHECK(lowered.graph.constants().parameter_gradients == Bytes(2 * 4));
}

// The mask is made of two numbers once, outside the step; nothing sums up its gradient.
TEST_CASE("lower: a mask that is computed from plain numbers is not trained") {
  const ModelGraph lowered = LowerText(
      "g (float[2,2] x) => (float[2,2] y) <float[2] w = {1,2}, float zero = {0.0},"
      " float low = {-100.0}, bool[2,2] allowed = {1,0,1,1}> "
      "{ mask = Where(allowed, zero, low) h = Mul(x, w) y = Add(h, mask) }");
  CHECK(lowered.graph.constants().parameter_gradients == Bytes(2 * 4));
}

TEST_CASE("lower: shape arithmetic vanishes, integers of the batch that are read are tensors") {
  const ModelGraph lowered = LowerText(
      "g (int64[N,5] ids) => (float[N,5,2] y) <float[9,2] table = "
      "{1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9},"
      " int64 one = {1}, int64 zero = {0}, int64 two = {2}> "
      "{ next = Add(ids, one) e = Gather(table, next) s = Shape(ids) n = Gather(s, one)"
      "  places = Range(zero, n, one) p = Gather(table, places) y = Add(e, p) }",
      BatchOf(3));
  CHECK(lowered.graph.nodes().size() == 3);  // Add of integers, Gather of the batch, Add.
  const Node& gather = NodeOf(lowered.graph, "Gather");
  CHECK(NamesOf(lowered.graph, gather.backward_reads) == "next");
  CHECK_FALSE(lowered.graph.tensor(gather.inputs[0]).requires_grad);
}

TEST_CASE("lower: nodes that reach no float output are left out; a model without one is an error") {
  const ModelGraph lowered = LowerText(
      "g (float[4] x) => (float[4] y, int64[1] best) <float[4] w = {1,2,3,4}> "
      "{ y = Mul(x, w) dead = Exp(y) best = ArgMax(y) }");
  CHECK(lowered.graph.nodes().size() == 1);
  CHECK(NamesOf(lowered.graph, lowered.graph.outputs()) == "y");
  const auto model = LoadText("g (float[4] x) => (int64[1] best) { best = ArgMax(x) }");
  REQUIRE(model.ok());
  const auto nothing = LowerModel(*model, {});
  REQUIRE_FALSE(nothing.ok());
  CHECK(nothing.error().code == ErrorCode::kInvalidInput);
}

TEST_CASE("lower: an unknown operator of declared shape costs its bytes, reads all, and warns") {
  const auto proto = ParseText(
      "<ir_version: 10, opset_import: [\"\" : 20, \"vendor\" : 1]> "
      "g (float[N,4] x) => (float[N,4] y) <float[4] w = {1,2,3,4}, float[N,4] h> "
      "{ a = Mul(x, w) h = vendor.Magic(a) y = Relu(h) }");
  const ModelGraph lowered = LowerProto(proto, BatchOf(2));
  const Node& node = NodeOf(lowered.graph, "vendor.Magic");
  CHECK(NamesOf(lowered.graph, node.backward_reads) == "a h");
  REQUIRE(lowered.warnings.size() == 1);
  CHECK(lowered.warnings[0].find("vendor.Magic") != std::string::npos);

  onnx::ModelProto undeclared = proto;
  undeclared.mutable_graph()->clear_value_info();
  const auto model = LoadProto(undeclared, BatchOf(2));
  REQUIRE_FALSE(model.ok());
  CHECK(model.error().message.find("Magic of vendor) on float[2,4]: ckplan doesn't know") !=
        std::string::npos);
}

TEST_CASE("lower: a model without trained parameters gives a warning") {
  const ModelGraph lowered = LowerText("g (float[4] x) => (float[4] y) { y = Relu(x) }");
  REQUIRE(lowered.warnings.size() == 1);
  CHECK(lowered.warnings[0].find("no trained parameter") != std::string::npos);
  CHECK(NodeOf(lowered.graph, "Relu").backward_reads.empty());
}

TEST_CASE("lower: names of nodes are unique for any file") {
  const ModelGraph lowered = LowerText(
      "g (float[4] x) => (float[4] y) <float[4] w = {1,2,3,4}> "
      "{ [same] a = Mul(x, w) [same] b = Relu(a) y = Relu(b) }");
  CHECK(lowered.graph.node(NodeId(0)).name == "same");
  CHECK(lowered.graph.node(NodeId(1)).name == "same#2");
  CHECK(lowered.graph.node(NodeId(2)).name == "Relu:y");
}

TEST_CASE("lower: an operand that occurs twice is listed twice") {
  const ModelGraph lowered = LowerText(
      "g (float[4] x) => (float[4] y) <float[4] w = {1,2,3,4}> { h = Mul(x, w) y = Add(h, h) }");
  const Node& add = NodeOf(lowered.graph, "Add");
  CHECK(NamesOf(lowered.graph, add.inputs) == "h h");
  CHECK(NamesOf(lowered.graph, add.gradient_passthrough) == "h");
}

TEST_CASE("lower: each value and each operation is mapped to the graph") {
  const Result<Model> model = LoadText(
      "g (float[2,4] x) => (float[4,2] y) <float[4,2] w = {1,2,3,4,5,6,7,8}, int64[2] s = {4, 2}> "
      "{ v = Reshape(x, s) t = Exp(w) y = Add(v, t) }");
  REQUIRE_MESSAGE(model.ok(), model.error().message);
  LowerOptions options;
  options.cost = ParseCostModel("unit").value();
  const ModelGraph lowered = LowerModel(*model, options).value();
  const Model::Impl& impl = model->impl();
  const auto tensor_named = [&](std::string_view name) {
    for (size_t i = 0; i < impl.values.size(); ++i) {
      if (impl.values[i].name == name) return lowered.tensor_of_value[i];
    }
    FAIL("no value " << name);
    return TensorId();
  };
  REQUIRE(lowered.tensor_of_value.size() == impl.values.size());
  CHECK(lowered.graph.tensor(tensor_named("x")).name == "x");
  CHECK(lowered.graph.tensor(tensor_named("y")).name == "y");
  CHECK(tensor_named("v") == tensor_named("x"));  // A view.
  CHECK(tensor_named("w").is_none());             // A constant, and a value computed from it.
  CHECK(tensor_named("t").is_none());
  REQUIRE(lowered.node_of_operation.size() == 3);
  CHECK(lowered.node_of_operation[0].is_none());
  CHECK(lowered.node_of_operation[1].is_none());
  CHECK(lowered.graph.node(lowered.node_of_operation[2]).name == impl.operations[2].name);
}

TEST_CASE("lower: measured costs are found by name, and all missing ones are named") {
  const TemporaryFile file("costs.json");
  file.Write(R"({"schema_version": "1.0", "unit": "ns", "nodes": [
    {"name": "Mul:h", "forward_cost": 5, "backward_cost": 7, "forward_workspace_bytes": 11,
     "backward_workspace_bytes": 13}]})");
  const auto model = LoadText(
      "g (float[4] x) => (float[4] y) <float[4] w = {1,2,3,4}> { h = Mul(x, w) y = Relu(h) }");
  REQUIRE(model.ok());
  LowerOptions options;
  options.cost = ParseCostModel("file:" + file.path()).value();
  const auto lowered = LowerModel(*model, options);
  REQUIRE_FALSE(lowered.ok());
  CHECK(lowered.error().code == ErrorCode::kInvalidInput);
  CHECK(lowered.error().message.find("\"Relu:y\" is missing") != std::string::npos);
}

constexpr int kFew = 2'500;
constexpr int kTimesFew = 8;

double CpuSecondsToLower(const onnx::ModelProto& model) {
  const std::clock_t begin = std::clock();
  LowerProto(model);
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

// Compares two sizes, so that neither the machine nor sanitizers matter: a linear cost grows like
// the size, a quadratic one like its square.
void CheckLinear(const std::function<onnx::ModelProto(int size)>& model_of) {
  const double few = CpuSecondsToLower(model_of(kFew));
  const double many = CpuSecondsToLower(model_of(kTimesFew * kFew));
  CAPTURE(few);
  CAPTURE(many);
  CHECK(many < few * kTimesFew * kTimesFew / 2);
}

onnx::NodeProto& AddNode(onnx::ModelProto& model, const char* op, const std::string& output,
                         std::initializer_list<std::string> inputs) {
  onnx::NodeProto& node = *model.mutable_graph()->add_node();
  node.set_op_type(op);
  node.add_output(output);
  for (const std::string& input : inputs) node.add_input(input);
  return node;
}

TEST_CASE("lower: the cost is linear if each constant is computed from the one before") {
  CheckLinear([](int size) {
    onnx::ModelProto model = ParseGraph(
        "g (float[2,4] x) => (float[2,4] t) <float[4] c0 = {1,2,3,4}> { t0 = Mul(x, c0) }");
    for (int i = 1; i <= size; ++i) {
      const std::string last = std::to_string(i - 1);
      const std::string own = std::to_string(i);
      AddNode(model, "Neg", "c" + own, {"c" + last});
      AddNode(model, "Add", i == size ? "t" : "t" + own, {"t" + last, "c" + own});
    }
    return model;
  });
}

TEST_CASE("lower: the cost is linear if names have to be made unique") {
  CheckLinear([](int size) {
    onnx::ModelProto model =
        ParseGraph("g (float[2,4] x) => (float[2,4] y) <float[4] w = {1,2,3,4}> { y = Mul(x, w) }");
    for (int i = 2; i < size; ++i) {
      AddNode(model, "Relu", "r" + std::to_string(i), {"y"}).set_name("m#" + std::to_string(i));
    }
    for (int i = 0; i < size; ++i) {
      AddNode(model, "Relu", "s" + std::to_string(i), {"y"}).set_name("m");
    }
    return model;
  });
}

}  // namespace
}  // namespace ckplan
