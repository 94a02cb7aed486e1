// Tests what LoadModel refuses, and how it treats dimensions, shape arithmetic and nested graphs.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <algorithm>

#include "lib/files/model/graph_hash.h"
#include "lib/files/model/model_impl.h"
#include "lib/files/model/testing/proto.h"
#include "lib/files/model/wire.h"

namespace ckplan {
namespace {

constexpr const char* kRelu = "g (float[N,8] x) => (float[N,8] y) { y = Relu(x) }";

Dims DimsOf(const Model& model, const std::string& name) {
  for (const ModelValue& value : model.impl().values) {
    if (value.name == name) return value.dims;
  }
  FAIL("no value " << name);
  return {};
}

// Returns the settings that an error advises, as "dims N=... input_shapes x=?,8".
std::string Advised(const Result<Model>& model) {
  REQUIRE_FALSE(model.ok());
  CHECK(model.error().code == ErrorCode::kUsage);
  std::string text;
  for (const Remedy::Setting& setting : model.error().remedy.settings) {
    text += (text.empty() ? "" : " ") + setting.name + " " + setting.value;
  }
  return text;
}

TEST_CASE("load: an open dimension is named, with the setting that binds it") {
  CheckFails(LoadText(kRelu), ErrorCode::kUsage, "open dimensions: N (input \"x\")");
  CHECK(Advised(LoadText(kRelu)) == "dims N=...");
  CHECK(
      Advised(LoadText("g (float[N,S] x, float[S,M] w) => (float[N,M] y) { y = MatMul(x, w) }")) ==
      "dims M=... dims N=... dims S=...");
  CHECK(Advised(LoadText("g (float[?,8] x) => (float[?,8] y) { y = Relu(x) }")) ==
        "input_shapes x=?,8");
}

TEST_CASE("load: a dimension that the model does not have is refused, with those it has") {
  CheckFails(LoadText(kRelu, {{{"N", 4}, {"batch", 4}}, {}}), ErrorCode::kUsage,
             "no dimension \"batch\"; the model's dimensions are: N");
  CheckFails(LoadText("g (float[4,8] x) => (float[4,8] y) { y = Relu(x) }", BatchOf(4)),
             ErrorCode::kUsage, "no open dimension");
}

TEST_CASE("load: a size below one is refused") {
  CheckFails(LoadText(kRelu, BatchOf(0)), ErrorCode::kUsage, "cannot be 0");
  CheckFails(LoadText(kRelu, BatchOf(-3)), ErrorCode::kUsage, "cannot be -3");
  CheckFails(LoadText(kRelu, {{}, {{"x", {0, 8}}}}), ErrorCode::kUsage, "dimension of 0");
}

TEST_CASE("load: sizes that overflow are an error of the input, not a wrap") {
  CheckFails(LoadText(kRelu, BatchOf(99'999'999'999'999'999)), ErrorCode::kInvalidInput,
             "input \"x\"");
  CheckFails(
      LoadText("g (float[N] x) => (float[M,K] y) <int64[2] s = {-1, 1}, int64[2] t = {1, -1}> "
               "{ c = Reshape(x, s) r = Reshape(x, t) y = MatMul(c, r) }",
               BatchOf(1'000'000'000'000)),
      ErrorCode::kInvalidInput, "too large for any machine");
}

TEST_CASE("load: --input-shape overrides a declared shape and binds its names") {
  const auto model = LoadText(kRelu, {{}, {{"x", {3, 5}}}});
  REQUIRE(model.ok());
  CHECK(DimsOf(*model, "y") == Dims{3, 5});
  CHECK(model->dims() == std::map<std::string, int64_t>{{"N", 3}});
  CheckFails(LoadText(kRelu, {{}, {{"x", {3}}}}), ErrorCode::kUsage, "2 dimensions");
  CheckFails(LoadText(kRelu, {{}, {{"z", {3, 8}}}}), ErrorCode::kUsage, "inputs are: x");
}

TEST_CASE("load: a damaged file is an error and never a crash") {
  const std::string whole = ParseGraph(kRelu).SerializeAsString();
  const TemporaryFile file("damaged.onnx");
  std::string zeroed = whole;
  std::fill(zeroed.begin() + 10, zeroed.begin() + 40, '\0');
  for (const std::string& bytes : {std::string(), std::string("not a model"), zeroed,
                                   whole.substr(0, whole.size() / 2), std::string(100, '\xff')}) {
    file.Write(bytes);
    CheckFails(LoadModel(file.path(), BatchOf(4)), ErrorCode::kInvalidInput, "readable ONNX model");
  }
  CheckFails(LoadModel("no/such/file.onnx", {}), ErrorCode::kIo, "no/such/file.onnx");
  CheckFails(LoadModel(".", {}), ErrorCode::kIo, "regular file");
}

TEST_CASE("load: every cut and every flipped byte of a model is read or refused") {
  std::string whole = ParseGraph(
                          "g (float[N,8] x) => (float[N,M] y) <float[8,2] w = {1,2,3,4,5,6,7,8,"
                          "9,10,11,12,13,14,15,16}, int64[2] s = {-1, 4}> "
                          "{ h = MatMul(x, w) y = Reshape(h, s) }")
                          .SerializeAsString();
  const TemporaryFile file("fuzzed.onnx");
  size_t refused = 0;
  for (size_t i = 0; i < whole.size(); ++i) {
    file.Write(whole.substr(0, i));
    refused += LoadModel(file.path(), BatchOf(4)).ok() ? 0 : 1;
    std::string flipped = whole;
    flipped[i] = static_cast<char>(flipped[i] ^ 0x55);
    file.Write(flipped);
    refused += LoadModel(file.path(), BatchOf(4)).ok() ? 0 : 1;
  }
  CHECK(refused > whole.size());
}

TEST_CASE("load: shape arithmetic of any operators is folded") {
  const auto model = LoadText(
      "g (float[N,3,8] x, float[1] v) => (float[A,B] y, float[C] z, float[D] u) "
      "<int64 zero = {0}, int64[1] minus = {-1}, int64[1] first = {0}, int64 two = {2},"
      " int64[1] end = {9223372036854775807}, int64[1] start = {1}, float half = {0.5}> {"
      "  s = Shape(x) n = Gather(s, zero) r = Unsqueeze(n, first) t = Concat<axis = 0>(r, minus)"
      "  y = Reshape(x, t)"
      "  tail = Slice(s, start, end) p = ReduceProd<keepdims = 0>(tail) m = Div(p, two)"
      "  span = Range(zero, m, two) count = Shape(span) z = Expand(v, count)"
      "  f = Cast<to = 1>(tail) h = Mul(f, half) g = Floor(h) i = Cast<to = 7>(g)"
      "  big = Greater(i, start) w = Where(big, i, start) j = ReduceSum<keepdims = 1>(w)"
      "  u = Expand(v, j) }",
      BatchOf(6));
  REQUIRE_MESSAGE(model.ok(), model.error().message);
  CHECK(DimsOf(*model, "y") == Dims{6, 24});
  CHECK(DimsOf(*model, "z") == Dims{6});      // Range(0, 24 / 2, 2) has 6 elements.
  CHECK(DimsOf(*model, "u") == Dims{1 + 4});  // floor([3, 8] / 2) = [1, 4].
}

TEST_CASE("load: an input without elements has known contents") {
  struct Row {
    const char* nodes;
    Dims dims;
  };
  const Row rows[] = {
      {"{ s = ReduceSum(x, axes) y = Sqrt(s) }", {1, 1, 1}},
      {"{ s = ReduceSum<keepdims = 0>(x, axes) y = Log(s) }", {}},
      {"{ s = ReduceSum<noop_with_empty_axes = 1>(x, axes) y = Log(s) }", {3, 4, 5}},
      {"{ s = ReduceMax(x, axes) y = Relu(s) }", {1, 1, 1}},
      {"{ c = Cast<to = 7>(narrow) s = ReduceMean<keepdims = 0>(x, c) y = Relu(s) }", {}},
      {"{ one = Constant<value_ints = [1]>() a = Concat<axis = 0>(axes, one) "
       "s = ReduceL2<keepdims = 0>(x, a) y = Relu(s) }",
       {3, 5}},
      {"{ s = Reshape(m, axes) y = Relu(s) }", {}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.nodes);
    const Result<Model> model =
        LoadText("g (float[3,4,5] x, float[1,1] m, int64[0] axes, int32[0] narrow) => (float y) " +
                 std::string(row.nodes));
    REQUIRE_MESSAGE(model.ok(), model.error().message);
    CHECK(DimsOf(*model, "y") == row.dims);
  }
  CheckFails(LoadText("g (float[3,4,5] x, int64[1] axes) => (float y) { s = ReduceSum(x, axes) "
                      "y = Sqrt(s) }"),
             ErrorCode::kInvalidInput, "a shape is unknown");
}

TEST_CASE("load: a value that nothing makes is named") {
  CheckFails(LoadText("g (float[2] x) => (float[2] y) { y = Neg(h) }"), ErrorCode::kInvalidInput,
             "reads \"h\", which nothing before it produces");
}

TEST_CASE("load: a shape that depends on the batch's contents names node, operator and input") {
  CheckFails(LoadText("g (float[4,8] x) => (int64[2,K] y) { y = NonZero(x) }"),
             ErrorCode::kInvalidInput, "NonZero:y\" (NonZero) on float[4,8]");
}

TEST_CASE("load: an If of known condition becomes its branch") {
  constexpr const char* kIf =
      "g (float[N,8] x) => (float[N,M] y) <bool c = {%d}> {"
      "  y = If (c) <then_branch = a () => (float[N,8] u) { u = Relu(x) },"
      "              else_branch = b () => (float[N,K] v) { v = Concat<axis = 1>(x, x) }> }";
  for (const int condition : {0, 1}) {
    char text[512];
    std::snprintf(text, sizeof text, kIf, condition);
    const auto model = LoadText(text, BatchOf(2));
    REQUIRE_MESSAGE(model.ok(), model.error().message);
    const Model::Impl& impl = model->impl();
    REQUIRE(impl.operations.size() == 1);
    CHECK(impl.operations[0].type() == (condition == 1 ? "Relu" : "Concat"));
    CHECK(impl.value(impl.graph_outputs[0]).dims == Dims{2, condition == 1 ? 8 : 16});
  }
}

TEST_CASE("load: control flow that depends on the batch is named, not dropped") {
  CheckFails(LoadText("g (float[2,8] x, int64 n, bool c) => (float[2,8] y) {"
                      "  [rounds] y = Loop (n, c, x) <body = b (int64 i, bool d, float[2,8] u) => "
                      "(bool e, float[2,8] v) { e = Identity(d) v = Neg(u) }> }"),
             ErrorCode::kUnsupported, "Loop \"rounds\": its number of rounds is unknown");
}

TEST_CASE("load: functions are inlined, attributes and inner functions included") {
  const auto proto = ParseText(
      "<ir_version: 10, opset_import: [\"\" : 20, \"local\" : 1]> "
      "g (float[N,8] x) => (float[N,8] y) {"
      "  h = local.Twice<slope: float = 0.25>(x) y = local.Twice<slope: float = 0.5>(h) }"
      "<opset_import: [\"\" : 20, \"local\" : 1], domain: \"local\"> "
      "Twice <slope> (a) => (c) { b = local.Once<slope: float = @slope>(a)"
      "                           c = local.Once<slope: float = @slope>(b) }"
      "<opset_import: [\"\" : 20], domain: \"local\"> "
      "Once <slope> (a) => (b) { b = LeakyRelu<alpha: float = @slope>(a) }");
  const auto model = LoadProto(proto, BatchOf(2));
  REQUIRE_MESSAGE(model.ok(), model.error().message);
  const auto& operations = model->impl().operations;
  REQUIRE(operations.size() == 4);
  CHECK(FloatAttribute(*operations[1].node, "alpha", 0) == 0.25);
  CHECK(FloatAttribute(*operations[3].node, "alpha", 0) == 0.5);
  CHECK(operations[1].file_node == 0);
  CHECK(operations[3].file_node == 1);
  CHECK(operations[0].name != operations[1].name);
}

TEST_CASE("load: a function that calls itself is refused") {
  const auto proto = ParseText(
      "<ir_version: 10, opset_import: [\"\" : 20, \"local\" : 1]> "
      "g (float[2,8] x) => (float[2,8] y) { y = local.Loop(x) }"
      "<opset_import: [\"local\" : 1], domain: \"local\"> Loop (a) => (b) { b = local.Loop(a) }");
  CheckFails(LoadProto(proto), ErrorCode::kUnsupported, "levels deep");
}

// Makes functions each of which calls the one before it twice, `levels` deep.
std::string DoublingFunctions(int levels) {
  std::string text =
      "<ir_version: 10, opset_import: [\"\" : 20, \"local\" : 1]> "
      "g (float[2,8] x) => (float[2,8] y) { y = local.F" +
      std::to_string(levels) + "(x) }";
  for (int i = 1; i <= levels; ++i) {
    const std::string inner = i == 1 ? "Relu" : "local.F" + std::to_string(i - 1);
    text += "<opset_import: [\"\" : 20, \"local\" : 1], domain: \"local\"> F" + std::to_string(i) +
            " (a) => (c) { b = " + inner + "(a) c = " + inner + "(b) }";
  }
  return text;
}

TEST_CASE("load: functions are counted before they are expanded") {
  const auto small = LoadProto(ParseText(DoublingFunctions(10)));
  REQUIRE_MESSAGE(small.ok(), small.error().message);
  CHECK(small->impl().operations.size() == 1024);
  CheckFails(LoadProto(ParseText(DoublingFunctions(20))), ErrorCode::kUnsupported,
             "expand to more than 250000 operations");
  CheckFails(LoadProto(ParseText(DoublingFunctions(63))), ErrorCode::kUnsupported,
             "expand to more");
  CheckFails(LoadProto(ParseText(DoublingFunctions(65))), ErrorCode::kUnsupported,
             "more than 64 levels deep");
}

TEST_CASE("load: names that expanded functions repeat are counted") {
  onnx::ModelProto model = ParseText(DoublingFunctions(12));
  CHECK(LoadProto(model).ok());
  for (auto& function : *model.mutable_functions()) {
    for (auto& node : *function.mutable_node()) node.set_name(std::string(10'000, 'n'));
  }
  CheckFails(LoadProto(model), ErrorCode::kUnsupported, "256 MiB of names");
}

TEST_CASE("load: a name that is longer than any name is refused") {
  onnx::ModelProto model = ParseGraph("g (float[2,8] x) => (float[2,8] y) { y = Relu(x) }");
  model.mutable_graph()->mutable_node(0)->set_name(std::string(1000, 'n'));
  CHECK(LoadProto(model).ok());
  model.mutable_graph()->mutable_node(0)->set_name(std::string(1 << 20, 'n'));
  CheckFails(LoadProto(model), ErrorCode::kUnsupported, "1048576 bytes long");
}

TEST_CASE("load: a Split with fewer outputs than it asks for is refused") {
  const std::string graph =
      "g (float[2,8] x) => (float[2,4] a, float[2,4] b) { a, b = Split <axis = 1, num_outputs = ";
  CHECK(LoadText(graph + "2> (x) }").ok());
  CheckFails(LoadText(graph + "268435456> (x) }"), ErrorCode::kInvalidInput,
             "num_outputs 268435456, but only 2 outputs");
}

TEST_CASE("load: operands that an operator does not have, lacks or does not take are refused") {
  const auto fails = [](const std::string& graph, const std::string& part) {
    CheckFails(LoadText(graph), ErrorCode::kInvalidInput, part);
  };
  fails("g (float[2,3] x, float[3] w) => (float[2,3] y) { y = Selu(x, w) }",
        "(Selu) has 2 inputs; it may have at most 1");
  fails("g (float[2,3] x, float[3,4] v) => (float[2,4] y) { y = MatMul(x, v, x) }",
        "(MatMul) has 3 inputs; it may have at most 2");
  fails("g (float[2,3] x) => (float[2,3] y, float[2,3] z) { y, z = Softmax(x) }",
        "(Softmax) has 2 outputs; it may have at most 1");
  fails("g (float[2,3] x) => (float[2,3] y) { y = Add(x) }",
        "(Add) has 1 inputs; it must have at least 2");
  fails("g (float[5,3] x) => (float[2,3] y) <int64[1] k = {2}> { y = TopK <axis = 0> (x, k) }",
        "(TopK) has 1 outputs; it must have at least 2");
  fails("g (float[1,3] x) => (float[2,3] y) <float[2] s = {2, 1}> { y = Tile(x, s) }",
        "(Tile) has floats as input 1, which does not accept floats");
  fails("g (float[2,3] x) => (bool[2,3] y) { y = RegexFullMatch <pattern = \"a\"> (\"\") }",
        "(RegexFullMatch) has no input 0, which is required");
  fails("g (float[2,3] x) => (float[2,3] y) { y = MatMul(x, \"\") }",
        "(MatMul) has no input 1, which is required");
}

// ONNX's rule for RegexFullMatch reads the type of its input without asking whether it has one.
TEST_CASE("load: an input that an unknown operator makes has no type, which crashes no rule") {
  for (const char* const reader :
       {"y = RegexFullMatch <pattern = \"a\"> (u)", "y = Mul(u, x)", "y = Concat <axis = 0> (x, u)",
        "y = MatMul(x, u)", "y, z = Split <axis = 0, num_outputs = 2> (u)"}) {
    CAPTURE(reader);
    CheckFails(LoadText(std::string("g (float[2,3] x) => (float[2,3] y) { u = other.Opaque(x) ") +
                        reader + " }"),
               ErrorCode::kInvalidInput, "output \"u\" of node \"Opaque:u\"");
  }
}

TEST_CASE("load: a window that is larger than what it slides over is refused as such") {
  for (const char* const window :
       {"y = Conv(x, w)", "y = MaxPool<kernel_shape = [9,9]>(x)",
        "y = AveragePool<kernel_shape = [9,9]>(x)", "y = LpPool<kernel_shape = [9,9]>(x)"}) {
    CAPTURE(window);
    onnx::ModelProto proto =
        ParseGraph(std::string("g (float[1,1,4,4] x) => (float[1,1,A,B] y) { ") + window + " }");
    onnx::TensorProto& weight = *proto.mutable_graph()->add_initializer();
    weight.set_name("w");
    weight.set_data_type(onnx::TensorProto::FLOAT);
    for (const int64_t dim : {1, 1, 9, 9}) weight.add_dims(dim);
    weight.set_data_location(onnx::TensorProto::EXTERNAL);
    CheckFails(LoadProto(proto), ErrorCode::kInvalidInput,
               "axis 2 of output 0 would have -4 elements");
  }
}

TEST_CASE("load: floats of two types where an operator takes one are refused") {
  const auto mixed = [](const std::string& operation) {
    CAPTURE(operation);
    CheckFails(LoadText("g (float[2,3] x) => (float[A,B] y) <float16[3,3] w = {1,2,3,4,5,6,7,8,9}, "
                        "float16[3] b = {1,2,3}> { " +
                        operation + " }"),
               ErrorCode::kInvalidInput, "inputs 0 and ");
  };
  mixed("y = MatMul(x, w)");
  mixed("y = Add(x, b)");
  mixed("y = Gemm(x, w, b)");
  mixed("y = Concat <axis = 0> (x, w)");
  mixed("y = LayerNormalization(x, b)");
  CHECK(LoadText("g (float[2,3] x) => (float[2,3] y) <float16[3] b = {1,2,3}> "
                 "{ y = Pow(x, b) }")
            .ok());
}

// Returns the bytes of a file with nested Ifs: protobuf itself writes no more levels than it reads.
std::string NestedIfs(int levels) {
  const auto field = [](uint32_t number, const std::string& content) {
    Rope rope;
    rope.AppendString(number, content);
    return rope.Flatten();
  };
  std::string graph =
      ParseGraph("b () => (float[4] y) { y = Relu(x) }").graph().SerializeAsString();
  for (int i = 0; i < levels; ++i) {
    const std::string branch = field(1, "then_branch") + field(6, graph);
    const std::string other = field(1, "else_branch") + field(6, "");
    const std::string node =
        field(1, "c") + field(2, "y") + field(4, "If") + field(5, branch) + field(5, other);
    onnx::GraphProto around = ParseGraph("b () => (float[4] y) { y = Relu(x) }").graph();
    around.clear_node();
    graph = field(1, node) + around.SerializeAsString();
  }
  const onnx::ModelProto rest = ParseGraph("g (float[4] x) => (float[4] y) <bool c = {1}> {}");
  return rest.SerializeAsString() + field(7, graph);  // Protobuf merges the two graphs.
}

TEST_CASE("load: branches that are nested too deep are not reported as a damaged file") {
  const TemporaryFile file("nested.onnx");
  file.Write(NestedIfs(20));
  const auto model = LoadModel(file.path(), {});
  REQUIRE_MESSAGE(model.ok(), model.error().message);
  CHECK(model->impl().operations.size() == 1);
  for (const int levels : {40, 1000}) {
    file.Write(NestedIfs(levels));
    CheckFails(LoadModel(file.path(), {}), ErrorCode::kUnsupported, "nested too deep");
  }
}

TEST_CASE("load: text that is nested too deep is refused before it is parsed") {
  const TemporaryFile text("nested.onnxtxt");
  std::string type = "float[4]";
  for (int i = 0; i < 100'000; ++i) type.insert(0, "seq(");
  text.Write("<ir_version: 10, opset_import: [\"\" : 20]> g (" + type + " x) => (float[4] y) {}");
  CheckFails(LoadModel(text.path(), {}), ErrorCode::kUnsupported, "nested too deep");
  const TemporaryFile proto("nested.textproto");
  std::string nested;
  for (int i = 0; i < 100'000; ++i) nested += "node { attribute { g { ";
  proto.Write("graph { " + nested);
  CheckFails(LoadModel(proto.path(), {}), ErrorCode::kInvalidInput, "too deep");
}

TEST_CASE("load: a wrongly declared shape does not count if ONNX knows better") {
  const auto model = LoadText(
      "g (float[4,8] x) => (float[1,1] y) <float[7,7] h> {"
      "  h = Relu(x) y = Neg(h) }");
  REQUIRE_MESSAGE(model.ok(), model.error().message);
  CHECK(DimsOf(*model, "y") == Dims{4, 8});
}

TEST_CASE("load: a model is identified by the hash of its graph, and its operator sets are named") {
  const TemporaryFile file("identity.onnx");
  file.Write(ParseGraph(kRelu).SerializeAsString());
  const auto model = LoadModel(file.path(), BatchOf(4));
  REQUIRE(model.ok());
  CHECK(model->identity().sha256 == GraphHash(ParseGraph(kRelu)));
  CHECK(model->identity().opsets == std::map<std::string, int64_t>{{"", 20}});
}

TEST_CASE("load: ONNX's own text and protobuf's text are read") {
  const TemporaryFile text("model.onnxtxt");
  text.Write("<ir_version: 10, opset_import: [\"\" : 20]> " + std::string(kRelu));
  const auto of_text = LoadModel(text.path(), BatchOf(4));
  REQUIRE_MESSAGE(of_text.ok(), of_text.error().message);
  CHECK(of_text->identity().sha256 == GraphHash(ParseGraph(kRelu)));
  const TemporaryFile proto("model.textproto");
  proto.Write(ParseGraph(kRelu).DebugString());
  const auto of_proto = LoadModel(proto.path(), BatchOf(4));
  REQUIRE_MESSAGE(of_proto.ok(), of_proto.error().message);
  CHECK(of_proto->identity().sha256 == GraphHash(ParseGraph(kRelu)));
  text.Write("this is no model");
  CheckFails(LoadModel(text.path(), {}), ErrorCode::kInvalidInput, "readable ONNX model");
  proto.Write("graph { node { op_type: 3 } }");
  CheckFails(LoadModel(proto.path(), {}), ErrorCode::kInvalidInput, "line 1");
}

TEST_CASE("load: a graph with a backward, or with operators that are too new, gives a warning") {
  onnx::ModelProto model = ParseGraph("g (float[2,8] x) => (float[2,8] y) { y = Relu(x) }");
  CHECK(LoadProto(model)->warnings().empty());
  model.mutable_opset_import(0)->set_version(10'000);
  const auto newer = LoadProto(model);
  REQUIRE_MESSAGE(newer.ok(), newer.error().message);
  REQUIRE(newer->warnings().size() == 1);
  CHECK(newer->warnings()[0].find("operator set 10000 of ai.onnx is newer") != std::string::npos);
  const auto training = LoadText(
      "g (float[2,8] x) => (float[2,8] y) <float[2,8] h> "
      "{ h = com.microsoft.ReluGrad(x, x) y = Relu(h) }");
  REQUIRE_MESSAGE(training.ok(), training.error().message);
  REQUIRE(training->warnings().size() == 1);
  CHECK(training->warnings()[0].find("(ReluGrad) belongs to a backward") != std::string::npos);
}

std::string FirstWarning(const Result<Model>& model) {
  REQUIRE_MESSAGE(model.ok(), model.error().message);
  return model->warnings().empty() ? "" : model->warnings()[0];
}

TEST_CASE("load: normalisations that PyTorch's exporter has folded away give a warning") {
  LoadOptions options;
  options.dims = {{"N", 4}};
  const Result<Model> model = LoadModel("testdata/regress/folded_norms.onnx", options);
  const std::string warning = FirstWarning(model);
  CAPTURE(warning);
  CHECK(warning.find("4 normalisations were folded into other nodes (\"node_Conv_29\", ") !=
        std::string::npos);
  CHECK(warning.find("optimize=False") != std::string::npos);
  CHECK(model->warnings().size() == 1);
  // A convolution is not warned about if its module is not a normalisation.
  onnx::ModelProto proto =
      ParseGraph("g (float[1,1,4,4] x, float[1,1,1,1] w) => (float[1,1,4,4] y) { y = Conv(x, w) }");
  const auto classes_are = [&](const std::string& classes) {
    onnx::NodeProto* const node = proto.mutable_graph()->mutable_node(0);
    node->clear_metadata_props();
    auto* const property = node->add_metadata_props();
    property->set_key("pkg.torch.onnx.class_hierarchy");
    property->set_value(classes);
    return FirstWarning(LoadProto(proto)).find("folded") != std::string::npos;
  };
  CHECK_FALSE(classes_are("['Net', 'torch.nn.modules.conv.Conv2d', 'aten.conv2d.default']"));
  CHECK(classes_are("['Net', 'BatchNorm2d', 'aten._native_batch_norm_legit_no_training.default']"));
  CHECK_FALSE(classes_are("no list"));
}

TEST_CASE("load: a backward is found in the branch that is taken, an optimizer anywhere") {
  for (const int taken : {1, 0}) {
    const std::string graph =
        "g (float[2,8] x) => (float[2,8] y) <bool c = {" + std::to_string(taken) +
        "}> {"
        "  y = If (c) <then_branch = a () => (float[2,8] u) <float[2,8] t> "
        "                           { [in] t = com.microsoft.ReluGrad(x, x) u = Relu(t) },"
        "              else_branch = b () => (float[2,8] v) { v = Neg(x) }> }";
    const std::string warning = FirstWarning(LoadText(graph));
    CAPTURE(warning);
    CHECK((warning.find("/in\" (ReluGrad) belongs to a backward") != std::string::npos) ==
          (taken == 1));
  }
  const std::string optimizer =
      FirstWarning(LoadText("g (float[2,8] x) => (float[2,8] y) <float[2,8] h> "
                            "{ h = ai.onnx.preview.training.Momentum(x) y = Relu(h) }"));
  CHECK(optimizer.find("(Momentum) belongs to an optimizer") != std::string::npos);
}

TEST_CASE("load: a backward is found in a function that is called") {
  for (const bool is_called : {true, false}) {
    onnx::ModelProto proto =
        ParseText(std::string("<ir_version: 10, opset_import: [\"\" : 20, \"local\" : 1]> "
                              "g (float[2,8] x) => (float[2,8] y) { y = ") +
                  (is_called ? "local.Back(x)" : "Relu(x)") +
                  " } <opset_import: [\"\" : 20, \"com.microsoft\" : 1], domain: \"local\"> "
                  "Back (a) => (c) { b = com.microsoft.GeluGrad(a, a) c = Relu(b) }");
    onnx::ValueInfoProto& info = *proto.mutable_functions(0)->add_value_info();
    info = proto.graph().input(0);
    info.set_name("b");
    const std::string warning = FirstWarning(LoadProto(proto));
    CAPTURE(warning);
    CHECK((warning.find("(GeluGrad) belongs to a backward") != std::string::npos) == is_called);
  }
}

TEST_CASE("load: dimensions and given inputs whose names are not UTF-8 are refused") {
  onnx::ModelProto proto = ParseGraph("g (float[N,8] x) => (float[N,8] y) { y = Relu(x) }");
  const std::string name = "n\xff";
  auto& input = *proto.mutable_graph()->mutable_input(0);
  input.mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim(0)->set_dim_param(name);
  CheckFails(LoadProto(proto, {{{name, 4}}, {}}), ErrorCode::kUnsupported,
             R"(the name "n\xff" of a dimension is not UTF-8)");
  CheckFails(LoadText(kRelu, {{}, {{name, {4, 8}}}}), ErrorCode::kUnsupported,
             R"(the name "n\xff" of an input is not UTF-8)");
}

TEST_CASE("load: dimensions beyond any machine, negative or contradictory, are refused") {
  const auto load = [](const std::vector<int64_t>& dims, const std::string& body) {
    onnx::ModelProto proto = ParseGraph("g (float[2,3] x) => (float[A,B] y) { " + body + " }");
    auto& weight = *proto.mutable_graph()->add_initializer();
    weight.set_name("w");
    weight.set_data_type(onnx::TensorProto::FLOAT);
    for (const int64_t dim : dims) weight.add_dims(dim);
    weight.set_data_location(onnx::TensorProto::EXTERNAL);
    return LoadProto(proto);
  };
  constexpr int64_t kHuge = int64_t{1} << 62;
  for (const auto& dims : std::vector<std::vector<int64_t>>{
           {3, kHuge}, {kHuge, kHuge}, {kHuge, 4, 4, 3, 1}, {3, int64_t{1} << 54}}) {
    CheckFails(load(dims, "y = MatMul(x, w)"), ErrorCode::kInvalidInput,
               "too large for any machine");
    CheckFails(load(dims, "y = Relu(x)"), ErrorCode::kInvalidInput, "too large for any machine");
  }
  for (const auto& dims : std::vector<std::vector<int64_t>>{{3, -1}, {3, -kHuge}, {-3, 4}}) {
    CheckFails(load(dims, "y = MatMul(x, w)"), ErrorCode::kInvalidInput, "a negative dimension");
    CheckFails(load(dims, "y = Relu(x)"), ErrorCode::kInvalidInput, "a negative dimension");
  }
  const std::string huge = std::to_string(kHuge);
  CheckFails(LoadText("g (float[" + huge + ",8] x) => (float[A,B] y) { y = Relu(x) }"),
             ErrorCode::kInvalidInput, "overflows or has no fixed type");
  CheckFails(LoadText("g (float[2,3] x) => (float[A,B] y) <int64[2] n = {" + huge +
                      ",2}> "
                      "{ t = Tile(x, n) y = Relu(t) }"),
             ErrorCode::kInvalidInput, "");
  CheckFails(LoadText("g (float[1,3] x) => (float[A,B] y) <int64[2] n = {" + huge +
                      ",3}> "
                      "{ t = Expand(x, n) y = Relu(t) }"),
             ErrorCode::kInvalidInput, "too large for any machine");
}

TEST_CASE("load: a pipe is refused, not waited for") {
  const TemporaryFile pipe("pipe.onnx");
  REQUIRE(::mkfifo(pipe.path().c_str(), 0600) == 0);
  CheckFails(LoadModel(pipe.path(), {}), ErrorCode::kIo, "not a regular file");
}

}  // namespace
}  // namespace ckplan
