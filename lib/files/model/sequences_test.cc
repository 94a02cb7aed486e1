#include "lib/files/model/sequences.h"

#include <fmt/format.h>

#include "lib/files/model/testing/proto.h"

namespace ckplan {
namespace {

// Writes everything on which a plan depends, one node per line. "s:0" is spelled "s_0", as a file
// may name it.
std::string TextOf(const TensorGraph& graph) {
  std::string text;
  for (const Node& node : graph.nodes()) {
    text +=
        fmt::format("{} {} ({}) -> ({}) reads ({}) passes ({}) costs {} {}\n", node.name, node.op,
                    NamesOf(graph, node.inputs), NamesOf(graph, node.outputs),
                    NamesOf(graph, node.backward_reads), NamesOf(graph, node.gradient_passthrough),
                    node.forward_cost.count(), node.backward_cost.count());
  }
  for (const Tensor& tensor : graph.tensors()) {
    text += fmt::format("{} {} {} {}\n", tensor.name, tensor.bytes.count(),
                        static_cast<int>(tensor.kind), tensor.requires_grad);
  }
  text += fmt::format("{} {} {}\n", NamesOf(graph, graph.outputs()),
                      graph.constants().parameters.count(),
                      graph.constants().parameter_gradients.count());
  for (size_t at = text.find("s:"); at != std::string::npos; at = text.find("s:", at)) {
    text[at + 1] = '_';
  }
  return text;
}

// x first passes a trained scale that gives h, so that later values need a gradient.
std::string Around(const std::string& constants, const std::string& body) {
  return "g (float[6,5] x) => (float[A,B] y) <float[5] w = {1,2,3,4,5}" + constants +
         "> { h = Mul(x, w) " + body + " }";
}

void CheckSame(const std::string& sequence, const std::string& split, int opset = 20) {
  CAPTURE(sequence);
  CHECK(TextOf(LowerProto(ParseGraph(sequence, opset)).graph) ==
        TextOf(LowerProto(ParseGraph(split, opset)).graph));
}

const std::string kPositions = ", int64 p0 = {0}, int64 p1 = {1}, int64 last = {-1}";

TEST_CASE("sequences: a list of sizes is that of a Split, for any operator set") {
  const std::string body = "a = SequenceAt(s, p0) b = SequenceAt(s, last) c = Relu(b) ";
  for (const char* const type : {"int64", "int32"}) {
    const std::string sizes = std::string(", ") + type + "[2] n = {2,3}";
    CheckSame(
        Around(kPositions + sizes,
               "s = SplitToSequence<axis = 1>(h, n) " + body + "y = Concat<axis = 1>(c, a)"),
        Around(", int64[2] n = {2,3}",
               "s_0, s_1 = Split<axis = 1>(h, n) c = Relu(s_1) y = Concat<axis = 1>(c, s_0)"));
  }
  CheckSame(Around(kPositions + ", int64[2] n = {2,3}",
                   "s = SplitToSequence<axis = -1>(h, n) " + body + "y = Concat<axis = 1>(c, a)"),
            Around("",
                   "s_0, s_1 = Split<axis = 1, split = [2,3]>(h) c = Relu(s_1) "
                   "y = Concat<axis = 1>(c, s_0)"),
            12);
}

TEST_CASE("sequences: a single size is that of all parts but the last") {
  CheckSame(Around(kPositions + ", int64 n = {4}",
                   "s = SplitToSequence(h, n) a = SequenceAt(s, p0) b = SequenceAt(s, p1) "
                   "y = Concat<axis = 0>(b, a)"),
            Around(", int64[2] n = {4,2}",
                   "s_0, s_1 = Split<axis = 0>(h, n) y = Concat<axis = 0>(s_1, s_0)"));
  CheckSame(Around(kPositions + ", int64 n = {3}",
                   "s = SplitToSequence(h, n) a = SequenceAt(s, p0) b = SequenceAt(s, p1) "
                   "y = Mul(b, a)"),
            Around(", int64[2] n = {3,3}", "s_0, s_1 = Split(h, n) y = Mul(s_1, s_0)"));
}

TEST_CASE("sequences: without sizes each part has one element, and may lose the axis") {
  const std::string five = ", int64[5] n = {1,1,1,1,1}";
  const std::string outputs = "s_0, s_1, s_2, s_3, s_4 = Split<axis = 1>(h, n) ";
  CheckSame(
      Around(kPositions, "s = SplitToSequence<axis = 1>(h) a = SequenceAt(s, p1) y = Relu(a)"),
      Around(five, outputs + "y = Relu(s_1)"));
  for (const int opset : {12, 20}) {
    const ModelGraph squeezed = LowerProto(
        ParseGraph("g (float[6,5] x) => (float[A] y) <float[5] w = {1,2,3,4,5}" + kPositions +
                       "> { h = Mul(x, w) s = SplitToSequence<axis = 1, keepdims = 0>(h) "
                       "a = SequenceAt(s, last) y = Relu(a) }",
                   opset));
    CAPTURE(opset);
    const std::string list = opset < 13 ? "" : ", n";
    const std::string axis = opset < 13 ? "<axes = [1]>(s_4)" : "(s_4, one)";
    const std::string attribute = opset < 13 ? ", split = [1,1,1,1,1]" : "";
    const ModelGraph expected = LowerProto(ParseGraph(
        "g (float[6,5] x) => (float[A] y) <float[5] w = {1,2,3,4,5}, int64[1] one = {1}" + five +
            "> { h = Mul(x, w) s_0, s_1, s_2, s_3, s_4 = Split<axis = 1" + attribute + ">(h" +
            list + ") a = Squeeze" + axis + " y = Relu(a) }",
        opset));
    CHECK(TextOf(squeezed.graph) == TextOf(expected.graph));
  }
  // keepdims counts only if sizes are left out.
  const ModelGraph kept =
      LowerText(Around(kPositions + ", int64 n = {1}",
                       "s = SplitToSequence<axis = 1, keepdims = 0>(h, n) y = SequenceAt(s, p1)"));
  CHECK(kept.graph.tensor(kept.graph.outputs()[0]).bytes == Bytes(int64_t{6} * 4));
}

TEST_CASE("sequences: a part may be read twice, be an output, or have no reader") {
  const auto graph = LowerText(
      "g (float[6,5] x) => (float[A,B] y, float[A,B] z) <float[5] w = {1,2,3,4,5}, int64 n = {2}" +
      kPositions +
      ">{ h = Mul(x, w) s = SplitToSequence(h, n) a = SequenceAt(s, p0) "
      "b = SequenceAt(s, p0) y = Mul(a, b) z = SequenceAt(s, p1) }");
  const Node& mul = graph.graph.node(NodeId(2));
  CHECK(NamesOf(graph.graph, mul.inputs) == "s:0 s:0");
  CHECK(NamesOf(graph.graph, NodeOf(graph.graph, "Split").outputs) == "s:0 s:1");
  CHECK(NamesOf(graph.graph, graph.graph.outputs()) == "y s:1");
  REQUIRE(graph.roles.size() == 6);
  CHECK(graph.roles[1].role == NodeRole::kNode);
  CHECK(graph.roles[2].role == NodeRole::kView);
}

TEST_CASE("sequences: names in the file that look like those of parts are not parts") {
  onnx::ModelProto proto =
      ParseGraph(Around(kPositions + ", int64 n = {3}",
                        "t = Relu(h) s = SplitToSequence(t, n) a = SequenceAt(s, p0) y = Neg(a)"));
  proto.mutable_graph()->mutable_node(1)->set_output(0, "s:0");
  proto.mutable_graph()->mutable_node(2)->set_input(0, "s:0");
  const ModelGraph lowered = LowerProto(proto);
  const Node& split = NodeOf(lowered.graph, "Split");
  CHECK(NamesOf(lowered.graph, split.inputs) == "s:0");
  CHECK(NamesOf(lowered.graph, split.outputs) == "s:0#2");
  CHECK(NamesOf(lowered.graph, NodeOf(lowered.graph, "Neg").inputs) == "s:0#2");
}

TEST_CASE("sequences: in functions and branches, and from one to the other") {
  const auto proto = ParseText(
      "<ir_version: 10, opset_import: [\"\" : 20, \"local\" : 1]> "
      "g (float[4,8] x) => (float[2,8] y) <float[8] w = {1,2,3,4,5,6,7,8}, int64 i = {1}> {"
      "  h = Mul(x, w) s = local.Halves(h) y = SequenceAt(s, i) }"
      "<opset_import: [\"\" : 20], domain: \"local\"> "
      "Halves (a) => (b) { n = Constant<value_int = 2>() b = SplitToSequence(a, n) }");
  const ModelGraph lowered = LowerProto(proto);
  CHECK(lowered.graph.nodes().size() == 2);
  CHECK(lowered.graph.tensor(lowered.graph.outputs()[0]).bytes == Bytes(int64_t{2} * 8 * 4));
}

TEST_CASE("sequences: non-constant sequences are refused by name") {
  const std::string head =
      "g (float[4,8] x, int64 i, int64 n, int64[2] m) => (float[A,B] y) "
      "<int64 p = {0}, int64 two = {2}> { ";
  struct Row {
    const char* body;
    const char* name;
  };
  const Row rows[] = {
      {"s = SplitToSequence(x, n) y = SequenceAt(s, p) }", "SplitToSequence \"SplitToSequence:s\""},
      {"s = SplitToSequence(x, m) y = SequenceAt(s, p) }", "SplitToSequence \"SplitToSequence:s\""},
      {"s = SplitToSequence(x, two) y = SequenceAt(s, i) }", "SequenceAt \"SequenceAt:y\""},
      {"s = SequenceConstruct(x, x) t = SequenceErase(s, i) y = SequenceAt(t, p) }",
       "SequenceErase \"SequenceErase:t\""},
      {"y = SplitToSequence(x, two) }", "output \"y\""},
  };
  for (const Row& row : rows) {
    CAPTURE(row.body);
    CheckFails(LoadText(head + row.body), ErrorCode::kUnsupported, "only tensors ");
    CheckFails(LoadText(head + row.body), ErrorCode::kUnsupported, row.name);
  }
}

TEST_CASE("sequences: positions and sizes that do not fit are refused") {
  const std::string head =
      "g (float[4,8] x) => (float[A,B] y) <int64 p = {2}, int64 q = {-3}, "
      "int64 zero = {0}, int64[2] wrong = {2,3}, int64[2] minus = {-1,5}, "
      "int64 two = {2}> { ";
  const auto load = [&head](const std::string& body) { return LoadText(head + body); };
  CheckFails(load("s = SplitToSequence(x, two) y = SequenceAt(s, p) }"), ErrorCode::kInvalidInput,
             "reads position 2 of a sequence of 2");
  CheckFails(load("s = SplitToSequence(x, two) y = SequenceAt(s, q) }"), ErrorCode::kInvalidInput,
             "reads position -3 of a sequence of 2");
  for (const char* const sizes : {"wrong", "minus", "zero"}) {
    CAPTURE(sizes);
    CHECK_FALSE(
        load(std::string("s = SplitToSequence(x, ") + sizes + ") y = SequenceAt(s, zero) }").ok());
  }
  CHECK_FALSE(load("s = SplitToSequence<axis = 2>(x) y = SequenceAt(s, zero) }").ok());
}

TEST_CASE("sequences: more parts than memory should hold are refused") {
  CheckFails(LoadText("g (float[1099511627776,1] x) => (float[A,B] y) <int64 p = {0}> "
                      "{ s = SplitToSequence(x) y = SequenceAt(s, p) }"),
             ErrorCode::kUnsupported, "SplitToSequence");
}

}  // namespace
}  // namespace ckplan
