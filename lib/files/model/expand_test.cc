#include "lib/files/model/expand.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "lib/files/model/testing/models.h"
#include "lib/files/model/testing/proto.h"

namespace ckplan {
namespace {

TEST_CASE("node order: nodes that are before they are produced are sorted, with a warning") {
  const auto model =
      LoadText("g (float[4,8] x) => (float[4,8] y) { y = Add(a, b) b = Sigmoid(a) a = Relu(x) }");
  REQUIRE(model.ok());
  REQUIRE(model->warnings().size() == 1);
  CHECK(model->warnings()[0].find("before they are produced") != std::string::npos);
  const ModelGraph sorted =
      LowerText("g (float[4,8] x) => (float[4,8] y) { a = Relu(x) b = Sigmoid(a) y = Add(a, b) }");
  const ModelGraph lowered =
      LowerText("g (float[4,8] x) => (float[4,8] y) { y = Add(a, b) b = Sigmoid(a) a = Relu(x) }");
  CHECK(lowered.graph.nodes().size() == sorted.graph.nodes().size());
}

TEST_CASE("node order: a sorted graph stays as it is, and a cycle is refused") {
  const auto model =
      LoadText("g (float[4,8] x) => (float[4,8] y) { b = Relu(x) a = Relu(x) y = Add(a, b) }");
  REQUIRE(model.ok());
  CHECK(model->warnings().empty());
  for (const char* const nodes :
       {"a = Add(x, y) y = Relu(a)", "a = Add(b, y) y = Relu(a) b = Relu(x)"}) {
    const auto cycle =
        LoadText(std::string("g (float[4,8] x) => (float[4,8] y) { ") + nodes + " }");
    REQUIRE_FALSE(cycle.ok());
    CHECK(cycle.error().message.find("(Add) reads \"y\", which depends on its result") !=
          std::string::npos);
  }
}

}  // namespace

// Tests of loops with a known number of rounds, and of sequences with known parts.

namespace {

std::string OpsOf(const std::string& graph, const LoadOptions& options = BatchOf(2)) {
  std::string ops;
  const ModelGraph lowered = LowerText(graph, options);
  for (const Node& node : lowered.graph.nodes()) {
    ops += (ops.empty() ? "" : " ") + node.op;
  }
  return ops;
}

// A loop of `trips` rounds around a layer, which collects each round's result.
std::string LoopOf(const std::string& trips, const std::string& condition = "c") {
  return "g (float[N,4] x, int64 n) => (float[N,4] y, float[R,N,4] all) <float[4,4] w = "
         "{1,2,3,4,1,2,3,4,1,2,3,4,1,2,3,4}, int64 trip = {" +
         trips +
         "}, bool yes = {1}> "
         "{ y, all = Loop(trip, yes, x) <body = b (int64 i, bool c, float[N,4] h) => (bool d, "
         "float[N,4] o, float[N,4] s) { d = Identity(" +
         condition +
         ") m = MatMul(h, w) o = "
         "Relu(m) s = Neg(o) }> }";
}

TEST_CASE("loops: a known number of rounds is unrolled, and shares its weights") {
  CHECK(OpsOf(LoopOf("3")) == "MatMul Relu Neg MatMul Relu Neg MatMul Relu Neg Concat");
  CHECK(LowerText(LoopOf("3"), BatchOf(2)).graph.constants().parameters == Bytes(64));
  CHECK(OpsOf(LoopOf("1")) == "MatMul Relu Neg");
}

// The names and bytes of the outputs: "y 32 z 16".
std::string OutputsOf(const std::string& graph, const LoadOptions& options = BatchOf(2)) {
  std::string text;
  const ModelGraph lowered = LowerText(graph, options);
  for (const TensorId output : lowered.graph.outputs()) {
    const Tensor& tensor = lowered.graph.tensor(output);
    text += (text.empty() ? "" : " ") + tensor.name + " " + std::to_string(tensor.bytes.count());
  }
  return text;
}

// The sizes are those that ONNX Runtime 1.32 computes for the same files.
TEST_CASE("loops: without a round, states pass through and results are empty") {
  const std::string weight =
      "<float[4,4] w = {1,2,3,4,1,2,3,4,1,2,3,4,1,2,3,4}, int64 zero = {0}, "
      "int64 three = {3}, bool yes = {1}, bool no = {0}, int64[2] rows = "
      "{-1,4}> { e = MatMul(x, w) ";
  const std::string body =
      ", e) <body = b (int64 i, bool c, float[N,4] h) => (bool d, float[N,4] "
      "o, float[N,4] s) { d = Identity(c) o = Relu(h) s = Neg(o) }> ";
  const std::string head = "g (float[N,4] x, int64 n) => (float[N,4] y, float[K,4] z) ";
  const std::string tail = "z0 = Reshape(all, rows) y = Sigmoid(q) z = Concat<axis = 0>(q, z0) }";
  for (const char* rounds : {"zero, yes", "three, no", "n, no", ", no"}) {
    CAPTURE(rounds);
    CHECK(OutputsOf(head + weight + "q, all = Loop(" + rounds + body + tail) == "y 32 z 32");
  }
  // Nothing that a round would do wrong counts.
  const std::string wrong =
      "g (float[N,4] x) => (float[N,4] y) " + weight +
      "s = SequenceEmpty() q = Loop(zero, yes, e) <body = b (int64 i, bool c, float[N,4] h) => "
      "(bool d, float[N,4] o) { d = Identity(c) o = SequenceAt(s, i) }> y = Relu(q) }";
  CHECK(OpsOf(wrong) == "MatMul Relu");
}

TEST_CASE("loops: one that can't be unrolled may be in the branch that isn't planned") {
  const std::string graph =
      "g (float[N,4] x, bool t, int64 n) => (float[N,4] y) <float[4,4] w = "
      "{1,2,3,4,1,2,3,4,1,2,3,4,1,2,3,4}, bool yes = {1}> { e = MatMul(x, w) y = If(t) "
      "<then_branch = a () => (float[N,4] p) { p = MatMul(e, w) }, else_branch = b () => "
      "(float[N,4] q) { l = Loop(n, yes, e) <body = r (int64 i, bool c, float[N,4] h) => (bool d, "
      "float[N,4] o) { d = Identity(c) o = Relu(h) }> m = Mul(l, e) s = Softmax(m) q = MatMul(s, "
      "l) }> }";
  CHECK(OpsOf(graph) == "MatMul MatMul");
  LoadOptions options = BatchOf(2);
  options.autograd = Autograd::kTorchCuda;
  options.restored = RestoredOperators::kCaptured;
  options.fused = FusedOperators::kAttention;
  CHECK(LoadText(graph, options).ok());
}

TEST_CASE("loops: an attempt to unroll one leaves its name as it is") {
  const std::string graph = LoopOf("3", "n");
  LoadOptions options = BatchOf(2);
  std::string open = LoopOf("3");
  open.replace(open.find("Loop(trip"), 9, "Loop(n");
  onnx::ModelProto proto = ParseGraph(open);
  proto.mutable_graph()->mutable_node(0)->set_name("loop");
  CheckFails(LoadProto(proto, options), ErrorCode::kUnsupported, "Loop \"loop\": its number");
  proto = ParseGraph(LoopOf("3", "c2"));
  auto& loop = *proto.mutable_graph()->mutable_node(0);
  loop.set_name("loop");
  // Whether it goes on depends on the batch.
  auto& body = *loop.mutable_attribute(0)->mutable_g();
  body.mutable_node(0)->set_op_type("IsNaN");
  body.mutable_node(0)->set_input(0, "one");
  auto& sum = *body.add_node();
  sum.set_op_type("ReduceSum");
  sum.add_input("h");
  sum.add_output("one");
  body.mutable_node()->SwapElements(0, body.node_size() - 1);
  CheckFails(LoadProto(proto, options), ErrorCode::kUnsupported,
             "Loop \"loop\": whether it continues");
}

TEST_CASE("loops: what decides the rounds may be computed, and sequences may be carried") {
  const std::string weight = "float[4,4] w = {1,2,3,4,1,2,3,4,1,2,3,4,1,2,3,4}, bool yes = {1}, ";
  // The condition of the next round is computed from the number of this one.
  CHECK(OpsOf("g (float[N,4] x) => (float[N,4] y) <" + weight +
              "int64 two = {2}> { y = Loop(, yes, x) <body = b (int64 i, bool c, float[N,4] s) => "
              "(bool d, float[N,4] o) { d = Less(i, two) o = MatMul(s, w) }> }") ==
        "MatMul MatMul MatMul");
  // As many rounds as the batch has steps.
  CHECK(OpsOf("g (float[N,3,4] x, float[N,4] z) => (float[N,4] y) <" + weight +
              "int64 one = {1}> { sh = Shape(x) n = Gather(sh, one) s = SplitToSequence<axis = 1, "
              "keepdims = 0>(x) y = Loop(n, yes, z) <body = b (int64 i, bool c, float[N,4] h) => "
              "(bool d, float[N,4] o) { d = Identity(c) t = SequenceAt(s, i) a = Add(h, t) o = "
              "MatMul(a, w) }> }") == "Split Add MatMul Add MatMul Add MatMul");
  CHECK(
      OpsOf("g (float[N,4] x) => (float[R,4] y) <" + weight +
            "int64 n = {2}> { e = SequenceEmpty() h, s = Loop(n, yes, x, e) <body = b (int64 i, "
            "bool c, float[N,4] h0, seq(float[N,4]) s0) => (bool d, float[N,4] o, seq(float[N,4]) "
            "s1) { d = Identity(c) o = MatMul(h0, w) s1 = SequenceInsert(s0, o) }> y = "
            "ConcatFromSequence<axis = 0>(s) }") == "MatMul MatMul Concat");
  CHECK(OpsOf("g (float[N,4] x) => (float[N,4] y) <" + weight +
              "int64 n = {0}> { z = MatMul(x, w) y = Loop(n, yes, z) <body = b (int64 i, bool c, "
              "float[N,4] s) => (bool d, float[N,4] o) { d = Identity(c) o = MatMul(s, w) }> }") ==
        "MatMul");
}

TEST_CASE("loops: what is unknown is said, and too many rounds are refused") {
  std::string unknown = LoopOf("3");
  unknown.replace(unknown.find("Loop(trip"), 9, "Loop(n");
  const Result<Model> model = LoadText(unknown, BatchOf(2));
  CheckFails(model, ErrorCode::kUnsupported, "Loop \"Loop:y\": its number of rounds is unknown");
  REQUIRE(model.error().remedy.settings.size() == 1);
  CHECK(model.error().remedy.settings[0].name == "set_inputs");
  CHECK(model.error().remedy.settings[0].value == "n=...");
  LoadOptions set = BatchOf(2);
  set.set_inputs = {"n=2"};
  CHECK(OpsOf(unknown, set) == "MatMul Relu Neg MatMul Relu Neg Concat");
  CheckFails(LoadText(LoopOf("1000000000000"), BatchOf(2)), ErrorCode::kUnsupported,
             "its rounds unroll to more than 250000 operations");
}

TEST_CASE("loops: a nested loop counts with its rounds") {
  const std::string nested =
      "g (float[N,4] x) => (float[N,4] y) <int64 trip = {100000}, bool yes = {1}> "
      "{ y = Loop(trip, yes, x) <body = b (int64 i, bool c, float[N,4] h) => (bool d, float[N,4] "
      "o) "
      "{ d = Identity(c) o = Loop(trip, yes, h) <body = b2 (int64 j, bool e, float[N,4] k) => "
      "(bool f, float[N,4] p) { f = Identity(e) p = Relu(k) }> }> }";
  CheckFails(LoadText(nested, BatchOf(2)), ErrorCode::kUnsupported, "more than 250000 operations");
}

TEST_CASE("scans: each round takes its slice, along any axis and in either direction") {
  const std::string scan =
      "g (float[N,4] h0, float[3,N,4] x) => (float[N,4] hT, float[3,N,4] ys) <float[4,4] w = "
      "{1,2,3,4,1,2,3,4,1,2,3,4,1,2,3,4}> { hT, ys = Scan<num_scan_inputs = 1, body = b "
      "(float[N,4] "
      "h, float[N,4] t) => (float[N,4] o, float[N,4] s) { m = MatMul(h, w) o = Add(m, t) s = "
      "Identity(o) }>(h0, x) }";
  CHECK(OpsOf(scan) == "Split MatMul Add MatMul Add MatMul Add Concat");
}

// ONNX Runtime 1.32 doesn't run these; ONNX says what they are.
TEST_CASE("scans: without a round, states pass through and results are empty along their axis") {
  const std::string scan =
      "g (float[N,4] h0, float[0,N,4] x) => (float[N,4] y, float[N,K,4] z) <float[4,4] w = "
      "{1,2,3,4,1,2,3,4,1,2,3,4,1,2,3,4}> { e = MatMul(h0, w) hT, ys = Scan<num_scan_inputs = 1, "
      "scan_output_axes = [1], body = b (float[N,4] h, float[N,4] t) => (float[N,4] o, float[N,4] "
      "s) { o = Add(h, t) s = Mul(o, o) }>(e, x) y = Relu(hT) one = Constant<value_ints = [1]>() "
      "f = Unsqueeze(e, one) z = Concat<axis = 1>(f, ys) }";
  CHECK(OutputsOf(scan) == "y 32 z 32");
}

onnx::ModelProto ScanOfSet8(const std::string& lengths, const std::string& attributes = "") {
  return ParseGraph(
      "g (float[N,4] h0, float[N,3,4] x, int64[N] l) => (float[N,4] y, float[N,3,4] z) <float[4,4] "
      "w = {1,2,3,4,1,2,3,4,1,2,3,4,1,2,3,4}> { y, z = Scan<num_scan_inputs = 1, " +
          attributes +
          "body = b (float[4] h, float[4] t) => (float[4] o, float[4] s) { m = MatMul(h, w) o = "
          "Add(m, t) s = Neg(o) }>(" +
          lengths + ", h0, x) }",
      8);
}

TEST_CASE("scans: those of operator set 8 have a batch, and run once for each sample and round") {
  for (const char* attributes : {"", "directions = [1], "}) {
    const ModelGraph lowered = LowerProto(ScanOfSet8("", attributes), BatchOf(2));
    std::string outputs;
    for (const TensorId output : lowered.graph.outputs()) {
      const Tensor& tensor = lowered.graph.tensor(output);
      outputs += tensor.name + " " + std::to_string(tensor.bytes.count()) + " ";
    }
    CHECK(outputs == "y 32 z 96 ");
    const auto& nodes = lowered.graph.nodes();
    CHECK(std::count_if(nodes.begin(), nodes.end(),
                        [](const Node& node) { return node.op == "MatMul"; }) == 6);
    CHECK(lowered.graph.constants().parameters == Bytes(64));
  }
  LoadOptions options = BatchOf(2);
  const Result<Model> open = LoadProto(ScanOfSet8("l"), options);
  CheckFails(open, ErrorCode::kUnsupported, "the lengths of its samples are unknown");
  REQUIRE(open.error().remedy.settings.size() == 1);
  CHECK(open.error().remedy.settings[0].value == "l=...");
  options.set_inputs = {"l=3,3"};
  CHECK(LowerProto(ScanOfSet8("l"), options).graph.outputs().size() == 2);
  options.set_inputs = {"l=3,2"};
  CheckFails(LoadProto(ScanOfSet8("l"), options), ErrorCode::kUnsupported,
             "its samples have different lengths");
}

constexpr const char* kParts =
    "g (float[N,4] x) => (float[N,8] y) <float[4,4] w = {1,2,3,4,1,2,3,4,1,2,3,4,1,2,3,4}, int64 "
    "zero = {0}, int64 last = {-1}> { a = MatMul(x, w) b = Relu(x) s = SequenceConstruct(a, b) ";

TEST_CASE("sequences: built, changed and joined, they are the operators that they stand for") {
  const std::string parts = kParts;
  CHECK(OpsOf(parts + "y = ConcatFromSequence<axis = 1>(s) }") == "MatMul Relu Concat");
  CHECK(OpsOf(parts + "t = SequenceErase(s, zero) u = SequenceInsert(t, a) y = "
                      "ConcatFromSequence<axis = 1>(u) }") == "MatMul Relu Concat");
  CHECK(OpsOf(parts + "z = SequenceAt(s, last) y = Concat<axis = 1>(z, z) }") == "Relu Concat");
  CHECK(OpsOf(parts + "n = SequenceLength(s) z = SequenceAt(s, zero) f = Cast<to = 1>(n) m = "
                      "Mul(z, f) y = Concat<axis = 1>(m, z) }") == "MatMul Mul Concat");
  CHECK(OpsOf(parts + "e = SequenceEmpty() t = SequenceInsert(e, a) u = SequenceInsert(t, b, zero) "
                      "y = ConcatFromSequence<axis = 1>(u) }") == "MatMul Relu Concat");
  CHECK(OpsOf(parts +
              "t = SequenceMap(s) <body = m (float[N,4] p) => (float[N,4] q) { q = Sigmoid(p) "
              "}> y = ConcatFromSequence<axis = 1>(t) }") == "MatMul Relu Sigmoid Sigmoid Concat");
}

TEST_CASE("sequences: a position that is not there is an error") {
  CheckFails(
      LoadText(std::string(kParts) +
                   "two = Constant<value_int = 2>() z = SequenceAt(s, two) y = Concat<axis = "
                   "1>(z, z) }",
               BatchOf(2)),
      ErrorCode::kInvalidInput, "reads position 2 of a sequence of 2");
}

}  // namespace

}  // namespace ckplan
