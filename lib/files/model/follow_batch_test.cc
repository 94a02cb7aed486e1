// Tests how a model is read with another batch than the one in its file.

#include "lib/files/model/follow_batch.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "lib/files/model/testing/proto.h"

namespace ckplan {
namespace {

using Place = std::optional<BatchPlace>;

TEST_CASE("batch axis: a batch above one is where its samples are as far apart as before") {
  CHECK(PlaceAfterReshape({8, 136, 28, 28}, {0, 1}, {8, 4, 34, 28, 28}, 8) == Place({0, 1}));
  CHECK(PlaceAfterReshape({8, 128, 768}, {0, 1}, {1024, 768}, 8) == Place({0, 128}));
  CHECK(PlaceAfterReshape({1024, 768}, {0, 128}, {1024, 12, 64}, 8) == Place({0, 128}));
  CHECK(PlaceAfterReshape({1024, 768}, {0, 128}, {8, 128, 768}, 8) == Place({0, 1}));
  CHECK(PlaceAfterReshape({50, 8, 768}, {1, 1}, {50, 96, 64}, 8) == Place({1, 12}));
  CHECK(PlaceAfterReshape({8, 128}, {0, 1}, {1, 8, 128}, 8) == Place({1, 1}));
  // The batch would be a part of two axes.
  CHECK(PlaceAfterReshape({8, 128, 768}, {0, 1}, {4, 256, 768}, 8) == Place());
}

TEST_CASE("batch axis: a batch of one is the axis of one with the same distance of samples") {
  CHECK(PlaceAfterReshape({1, 136, 28, 28}, {0, 1}, {1, 4, 34, 28, 28}, 1) == Place({0, 1}));
  CHECK(PlaceAfterReshape({50, 1, 768}, {1, 1}, {50, 1, 12, 64}, 1) == Place({1, 1}));
  CHECK(PlaceAfterReshape({50, 768}, {0, 1}, {50, 1, 768}, 1) == Place({1, 1}));
  // Here the samples of the first axis are whole sequences, so the axis of one is another.
  CHECK(PlaceAfterReshape({50, 768}, {0, 50}, {50, 1, 768}, 1) == Place({0, 50}));
  // Among several, it is the one in the same place, or the first one.
  CHECK(PlaceAfterReshape({1, 1, 768}, {1, 1}, {1, 1, 12, 64}, 1) == Place({1, 1}));
  CHECK(PlaceAfterReshape({1, 768}, {0, 1}, {1, 1, 768}, 1) == Place({0, 1}));
  CHECK(PlaceAfterReshape({5, 7, 1, 4}, {2, 1}, {35, 1, 1, 4}, 1) == Place({2, 1}));
  CHECK(PlaceAfterReshape({5, 7, 2, 1, 4}, {3, 1}, {70, 1, 1, 4}, 1) == Place());
}

TEST_CASE("batch axis: a batch of one between two axes belongs to the one that changes") {
  CHECK(PlaceAfterReshape({1, 128, 768}, {0, 1}, {128, 768}, 1) == Place({0, 128}));
  CHECK(PlaceAfterReshape({50, 1, 768}, {1, 1}, {50, 12, 64}, 1) == Place({1, 12}));
  CHECK(PlaceAfterReshape({50, 12, 64}, {1, 12}, {50, 768}, 1) == Place({0, 1}));
  CHECK(PlaceAfterReshape({50, 1, 768}, {1, 1}, {50, 768}, 1) == Place({0, 1}));
  CHECK(PlaceAfterReshape({5, 10, 1, 12, 64}, {2, 1}, {50, 12, 64}, 1) == Place({0, 1}));
  // Both axes are as they were: it could have joined either.
  CHECK(PlaceAfterReshape({50, 1, 12, 64}, {1, 1}, {50, 12, 64}, 1) == Place());
}

TEST_CASE("batch axis: an axis is asked whether it may hold the batch") {
  CHECK(PlaceOnAxis({50, 1, 12, 64}, {1, 1}, {50, 12, 64}, 0, 1) == Place({0, 1}));
  CHECK(PlaceOnAxis({50, 1, 12, 64}, {1, 1}, {50, 12, 64}, 1, 1) == Place({1, 12}));
  CHECK(PlaceOnAxis({50, 1, 12, 64}, {1, 1}, {50, 12, 64}, 2, 1) == Place());
}

LoadOptions WithBatchOf(int64_t batch) {
  LoadOptions options;
  options.batch = batch;
  return options;
}

Dims DimsIn(const Model& model, const std::string& name) {
  for (const ModelValue& value : model.impl().values) {
    if (value.name == name) return value.dims;
  }
  FAIL("no value " << name);
  return {};
}

// Loads a graph with a batch and returns the dimensions of one of its values.
Dims DimsWith(int64_t batch, const std::string& graph, const std::string& name) {
  const Result<Model> model = LoadText(graph, WithBatchOf(batch));
  REQUIRE_MESSAGE(model.ok(), model.error().message);
  return DimsIn(*model, name);
}

// Replaces every "N" by a number.
std::string AtBatch(std::string graph, int64_t batch) {
  for (size_t at = graph.find('N'); at != std::string::npos; at = graph.find('N', at)) {
    graph.replace(at, 1, std::to_string(batch));
  }
  return graph;
}

TEST_CASE("batch: the shape of a Reshape follows the batch of its input") {
  const char* kShuffle =
      "g (float[N,12,5,5] x) => (float[N,12,5,5] y, float[N,300] f) "
      "<int64[5] s = {N, 3, 4, 5, 5}, int64[4] t = {N, 12, 5, 5}, int64[2] u = {N, -1}> "
      "{ a = Reshape(x, s) b = Transpose<perm = [0, 2, 1, 3, 4]>(a) y = Reshape(b, t)"
      "  f = Reshape(y, u) }";
  for (const int64_t in_file : {1, 2, 12}) {
    CAPTURE(in_file);
    const std::string graph = AtBatch(kShuffle, in_file);
    for (const int64_t batch : {1, 8, 12}) {
      CAPTURE(batch);
      CHECK(DimsWith(batch, graph, "a") == Dims{batch, 3, 4, 5, 5});
      CHECK(DimsWith(batch, graph, "y") == Dims{batch, 12, 5, 5});
      CHECK(DimsWith(batch, graph, "f") == Dims{batch, 300});
    }
  }
}

TEST_CASE("batch: a -1 takes it where it may be, and else the number does") {
  const char* kWindows =
      "g (float[N,4,6] x) => (float[A,B,C] y) <int64[3] s = {-1, 2, 6}, int64[4] t = {M, 2, 3, -1},"
      " int64[3] u = {N, 4, -1}> { w = Reshape(x, s) q = Reshape(w, t) y = Reshape(q, u) }";
  for (const int64_t in_file : {1, 3}) {
    CAPTURE(in_file);
    std::string graph = AtBatch(kWindows, in_file);
    graph.replace(graph.find('M'), 1, std::to_string(2 * in_file));
    CHECK(DimsWith(8, graph, "w") == Dims{16, 2, 6});
    CHECK(DimsWith(8, graph, "q") == Dims{16, 2, 3, 2});
    CHECK(DimsWith(8, graph, "y") == Dims{8, 4, 6});
  }
}

TEST_CASE("batch: shapes that no batch meets stay as they are") {
  const std::string graph =
      "g (float[1,6] x, float[1,1] z) => (float[1,6] y) "
      "<float[6] w = {1, 2, 3, 4, 5, 6}, int64[2] s = {1, 6}, int64[2] same = {0, -1}> "
      "{ v = Reshape(w, s) a = Add(x, v) y = Reshape(a, same) }";
  CHECK(DimsWith(8, graph, "v") == Dims{1, 6});
  CHECK(DimsWith(8, graph, "y") == Dims{8, 6});
}

TEST_CASE("batch: shapes from Concat, Shape and Constant follow it as well") {
  const std::string graph =
      "g (float[1,4,6] x) => (float[1,4,2,3] y) <int64[1] one = {1}, int64 first = {1}> "
      "{ s = Shape(x) l = Gather(s, first) a = Constant<value_ints = [0]>() m = Unsqueeze(l, a)"
      "  t = Constant<value_ints = [2, 3]>() u = Concat<axis = 0>(one, m, t) y = Reshape(x, u) }";
  CHECK(DimsWith(8, graph, "y") == Dims{8, 4, 2, 3});
  // The file computes this one itself.
  CHECK(DimsWith(8,
                 "g (float[1,6] x) => (float[1,2,3] y) <int64[1] zero = {0}, int64[1] one = {1}> "
                 "{ s = Shape(x) n = Slice(s, zero, one) t = Constant<value_ints = [2, 3]>()"
                 "  u = Concat<axis = 0>(n, t) y = Reshape(x, u) }",
                 "y") == Dims{8, 2, 3});
}

TEST_CASE("batch: it is followed through attention whose sequence comes first") {
  const std::string graph =
      "g (float[1,5,12] x) => (float[5,1,12] y) <int64[3] heads = {5, 3, 4},"
      " int64[2] flat = {5, 12}, int64[3] out = {5, 1, 12}> "
      "{ s = Transpose<perm = [1, 0, 2]>(x) q = Reshape(s, heads) h = Transpose<perm = [1, 0, "
      "2]>(q)"
      "  k = Transpose<perm = [1, 2, 0]>(q) a = MatMul(h, k) v = MatMul(a, h)"
      "  b = Transpose<perm = [1, 0, 2]>(v) f = Reshape(b, flat) y = Reshape(f, out) }";
  CHECK(DimsWith(8, graph, "a") == Dims{24, 5, 5});
  CHECK(DimsWith(8, graph, "f") == Dims{40, 12});
  CHECK(DimsWith(8, graph, "y") == Dims{5, 8, 12});
}

TEST_CASE("batch: Expand, Resize and whole Slices of the batch follow it") {
  CHECK(DimsWith(16,
                 "g (float[4,1,6] x) => (float[4,3,6] y) <int64[3] s = {4, 3, 6}> "
                 "{ y = Expand(x, s) }",
                 "y") == Dims{16, 3, 6});
  CHECK(DimsWith(8,
                 "g (float[1,2,4,4] x) => (float[1,2,8,8] y) <int64[4] s = {1, 2, 8, 8}> "
                 "{ y = Resize<mode = \"nearest\">(x, , , s) }",
                 "y") == Dims{8, 2, 8, 8});
  const char* kSlice =
      "g (float[1,6] x) => (float[A,B] y) <int64[2] a = {0, 1}, int64[2] e = {1, 5},"
      " int64[2] axes = {0, 1}> { y = Slice(x, a, e, axes) }";
  CHECK(DimsWith(8, kSlice, "y") == Dims{8, 4});
}

TEST_CASE("batch: the token that is put before each sample is expanded") {
  CHECK(DimsWith(8,
                 "g (float[1,4,2] x) => (float[1,5,2] y) <float[1,1,2] token = {1, 2}> "
                 "{ y = Concat<axis = 1>(token, x) }",
                 "y") == Dims{8, 5, 2});
  // With a batch above 1 the file has it expanded already.
  const char* kExpanded =
      "g (float[4,4,2] x) => (float[4,5,2] y) <float[1,1,2] token = {1, 2},"
      " int64[3] s = {4, 1, 2}> "
      "{ t = Expand(token, s) u = Relu(t) y = Concat<axis = 1>(u, x) }";
  CHECK(DimsWith(16, kExpanded, "y") == Dims{16, 5, 2});
  CHECK(DimsWith(1, kExpanded, "y") == Dims{1, 5, 2});
  CHECK(DimsWith(16,
                 "g (float[4,6] x) => (float[4,6] y) <int64[2] s = {4, 6}> "
                 "{ m = ConstantOfShape(s) y = Add(x, m) }",
                 "y") == Dims{16, 6});
}

TEST_CASE("batch: initial states of recurrent operators are expanded") {
  const std::string graph =
      "g (float[5,1,3] x) => (float[5,1,1,2] y) <int64[3] ws = {1, 8, 3},"
      " int64[3] rs = {1, 8, 2},"
      " int64[3] s = {1, 1, 2}, int64[3] first = {5, 1, 3}> "
      "{ w = ConstantOfShape(ws) r = ConstantOfShape(rs) i = Reshape(x, first) h = "
      "ConstantOfShape(s) c = ConstantOfShape(s)"
      "  y = LSTM<hidden_size = 2>(i, w, r, , , h, c) }";
  // The steps come first, so the first dimension of this input is not the batch of the LSTM.
  const Result<Model> model = LoadText(graph, WithBatchOf(10));
  REQUIRE_MESSAGE(model.ok(), model.error().message);
  CHECK(DimsIn(*model, "y") == Dims{10, 1, 1, 2});
  const std::string transposed =
      "g (float[1,5,3] x) => (float[5,1,1,2] y) <int64[3] ws = {1, 8, 3},"
      " int64[3] rs = {1, 8, 2},"
      " int64[3] s = {1, 1, 2}> "
      "{ w = ConstantOfShape(ws) r = ConstantOfShape(rs)"
      "  i = Transpose<perm = [1, 0, 2]>(x) h = ConstantOfShape(s) c = ConstantOfShape(s)"
      "  y = LSTM<hidden_size = 2>(i, w, r, , , h, c) }";
  const Result<Model> read = LoadText(transposed, WithBatchOf(8));
  REQUIRE_MESSAGE(read.ok(), read.error().message);
  CHECK(DimsIn(*read, "y:batch5:expanded") == Dims{1, 8, 2});
  CHECK(DimsIn(*read, "y") == Dims{5, 1, 8, 2});
}

TEST_CASE("batch: the ends of a Slice are attributes in old operator sets") {
  const auto proto = ParseGraph(
      "g (float[1,6] x) => (float[1,4] z) "
      "{ z = Slice<starts = [0, 1], ends = [1, 5], axes = [0, 1]>(x) }",
      9);
  const Result<Model> model = LoadProto(proto, WithBatchOf(8));
  REQUIRE_MESSAGE(model.ok(), model.error().message);
  CHECK(DimsIn(*model, "z") == Dims{8, 4});
}

TEST_CASE("batch: shapes in functions follow it") {
  const auto proto = ParseText(
      "<ir_version: 10, opset_import: [\"\" : 20, \"f\" : 1]> "
      "g (float[1,6] x) => (float[1,3,2] y) { y = f.Fold(x) }"
      "<opset_import: [\"\" : 20], domain: \"f\"> "
      "Fold (x) => (y) { s = Constant<value_ints = [1, 3, 2]>() y = Reshape(x, s) }");
  const Result<Model> model = LoadProto(proto, WithBatchOf(8));
  REQUIRE_MESSAGE(model.ok(), model.error().message);
  REQUIRE(model->impl().graph_outputs.size() == 1);
  CHECK(model->impl().value(model->impl().graph_outputs[0]).dims == Dims{8, 3, 2});
}

TEST_CASE("batch: the tensors are those of the model with an open batch") {
  const char* kNet =
      "g (float[N,12,4,4] x) => (float[N,6] y) <int64[4] wd = {12, 12, 1, 1}, int64[2] vd = {192, "
      "6},"
      " int64[5] s = {M, 3, 4, 4, 4}, int64[4] t = {M, 12, 4, 4}, int64[2] u = {M, -1}> "
      "{ w = ConstantOfShape(wd) v = ConstantOfShape(vd) a = Conv(x, w) b = Reshape(a, s) c = "
      "Transpose<perm = [0, 2, 1, 3, 4]>(b)"
      "  d = Reshape(c, t) e = Relu(d) f = Reshape(e, u) y = MatMul(f, v) }";
  const auto with_shapes = [&](const std::string& first) {
    std::string graph = kNet;
    for (size_t at = graph.find("{M"); at != std::string::npos; at = graph.find("{M")) {
      graph.replace(at, 2, "{" + first);
    }
    return graph;
  };
  const TensorGraph open = LowerText(with_shapes("0"), BatchOf(8)).graph;
  for (const int64_t in_file : {1, 4}) {
    CAPTURE(in_file);
    const std::string graph = AtBatch(with_shapes("N"), in_file);
    const TensorGraph closed = LowerText(graph, WithBatchOf(8)).graph;
    REQUIRE(closed.tensors().size() == open.tensors().size());
    for (const TensorId id : open.tensors().ids()) {
      CHECK(closed.tensor(id).name == open.tensor(id).name);
      CHECK(closed.tensor(id).bytes == open.tensor(id).bytes);
    }
    REQUIRE(closed.nodes().size() == open.nodes().size());
    for (const NodeId id : open.nodes().ids()) {
      CHECK(closed.node(id).forward_cost == open.node(id).forward_cost);
    }
  }
}

TEST_CASE("batch: a node that does not take it is named, with what it reads") {
  const auto fails = [](const std::string& graph, const std::string& part) {
    CheckFails(LoadText(graph, WithBatchOf(8)), ErrorCode::kUnsupported, part);
    CheckFails(LoadText(graph, WithBatchOf(8)), ErrorCode::kUnsupported,
               "; export the model with an open batch");
  };
  fails(
      "g (float[1,5,3,4] z) => (float[5,3,4] y) <int64[3] s = {5, 3, 4}> "
      "{ x = Transpose<perm = [1, 0, 2, 3]>(z) [fold] y = Reshape(x, s) }",
      "node \"fold\" (Reshape) on float[5,8,3,4], int64[3] {5,3,4}: its shape [5,3,4] does not "
      "determine which dimension is the batch");
  fails(
      "g (float[2,6] x) => (float[1,6] y) <int64[1] a = {0}, int64[1] e = {1}> "
      "{ [half] y = Slice(x, a, e, a) }",
      "node \"half\" (Slice) on float[8,6], int64[1] {0}, int64[1] {1}, int64[1] {0}: it takes a "
      "part of the batch");
  fails("g (float[1,6] x) => (float[6] y) <int64 first = {0}> { [one] y = Gather(x, first) }",
        " {0}: it takes a part of the batch");
  fails("g (float[1,6] x) => (float[6] y) { [flat] y = Squeeze(x) }",
        "node \"flat\" (Squeeze) on float[8,6]: its output \"y\" has 2 dimensions instead of 1");
  fails(
      "g (float[4,2] x) => (float[4,2] y) <float[4,2] w = {1, 2, 3, 4, 5, 6, 7, 8}> "
      "{ [add] y = Add(x, w) }",
      "node \"add\" (Add) on float[8,2], float[4,2] of known contents: the input shapes are "
      "incompatible");
  CheckFails(LoadText("g (float[4,2] x) => (float[4,2] y) <float[4,2] w = {1, 2, 3, 4, 5, 6, 7, 8}>"
                      " { [add] y = Add(x, w) }",
                      WithBatchOf(1)),
             ErrorCode::kUnsupported, "an operand has the old batch");
}

TEST_CASE("batch: the shape that only the file knows follows it in the first dimension") {
  const std::string head =
      "<ir_version: 10, opset_import: [\"\" : 20, \"own\" : 1]> g (float[1,5,3] x) => ";
  const Result<Model> first = LoadProto(
      ParseText(head + "(float[1,5,7] y) <float[1,5,7] h> { h = own.Magic(x) y = Relu(h) }"),
      WithBatchOf(8));
  REQUIRE_MESSAGE(first.ok(), first.error().message);
  CHECK(DimsIn(*first, "y") == Dims{8, 5, 7});
  const Result<Model> other =
      LoadProto(ParseText(head + "(float[5,7] y) <float[5,7] h> { h = own.Magic(x) y = Relu(h) }"),
                WithBatchOf(8));
  CheckFails(other, ErrorCode::kUnsupported, "only the file knows the shape of its output");
}

TEST_CASE("batch: inputs say which batch they have in the file") {
  const auto batch_of = [](const std::string& inputs) {
    const Result<Model> model =
        LoadText("g (" + inputs + ") => (float[A,B] y) { y = Relu(x) }", BatchOf(4));
    return model.ok() ? model->constant_batch() : std::nullopt;
  };
  CHECK(batch_of("float[2,8] x, float[N] z") == std::nullopt);
  CHECK(batch_of("float[N,8] x") == std::nullopt);
  const auto closed = [](const std::string& inputs) {
    return LoadText("g (" + inputs + ") => (float[A,B] y) { y = Relu(x) }")->constant_batch();
  };
  CHECK(closed("float[2,8] x, float[2] z, float s") == 2);
  CHECK(closed("float[2,8] x, float[3] z") == std::nullopt);
  CHECK(LoadText("g (float[2,8] x) => (float[A,B] y) { y = Relu(x) }", WithBatchOf(8))
            ->constant_batch() == std::nullopt);
}

TEST_CASE("batch: where inputs have none, or an open one, the message says what to do") {
  const auto load = [](const std::string& inputs, LoadOptions options) {
    options.batch = 8;
    return LoadText("g (" + inputs + ") => (float[A,B] y) { y = Relu(x) }", options);
  };
  const Result<Model> open = load("float[N,4] x", BatchOf(4));
  CheckFails(open, ErrorCode::kUsage, "the batch is the dimension N, which cannot be both 4 and 8");
  CHECK(load("float[N,4] x, float s", {}).value().dims() == DimSizes{{"N", 8}});
  CHECK(load("float[N,4] x", BatchOf(8)).ok());
  const Result<Model> nameless = load("float[?,4] x, float[?,C] z, float s", {{{"C", 3}}, {}});
  REQUIRE_MESSAGE(nameless.ok(), nameless.error().message);
  CHECK(DimsIn(*nameless, "y") == Dims{8, 4});
  CheckFails(load("float[N,4] x, float[M,4] z", {}), ErrorCode::kUsage, "open dimensions: ");
  CheckFails(load("float[1,4] x, float[3] z", {}), ErrorCode::kUsage,
             "the first dimensions of its inputs differ, so none of them is the batch of all: 1 of "
             "\"x\", 3 of \"z\"");
  CheckFails(LoadText("g (float s) => (float y) { y = Relu(s) }", WithBatchOf(8)),
             ErrorCode::kUsage, "no input has a dimension that could be the batch");
  LoadOptions shape;
  shape.input_shapes = {{"x", {4, 9}}};
  CheckFails(load("float[1,4] x", shape), ErrorCode::kUsage, "has a batch of 4, not 8");
  shape.input_shapes = {{"x", {8, 9}}};
  const Result<Model> both = load("float[1,4] x", shape);
  REQUIRE_MESSAGE(both.ok(), both.error().message);
  CHECK(DimsIn(*both, "y") == Dims{8, 9});
}

TEST_CASE(
    "batch: a size of a dimension that a model with a burnt-in batch lacks may be its batch") {
  const Result<Model> model =
      LoadText("g (float[1,6] x) => (float[1,6] y) { y = Relu(x) }", BatchOf(64));
  CheckFails(model, ErrorCode::kUsage, "the model has no dimension \"N\"");
  REQUIRE(model.error().remedy.settings.size() == 1);
  CHECK(model.error().remedy.settings[0].name == "batch");
  CHECK(model.error().remedy.settings[0].value == "64");
}

TEST_CASE("batch: a batch of 0 in the file is set like an open one") {
  const auto read = [](const std::string& inputs, const std::string& nodes) {
    return LoadText("g (" + inputs + ") => (float[0,6] y) <int64[2] s = {0, 6}> { " + nodes + " }",
                    WithBatchOf(8));
  };
  const Result<Model> one = read("float[0,6] x", "r = Relu(x) y = Reshape(r, s)");
  REQUIRE_MESSAGE(one.ok(), one.error().message);
  CHECK(DimsIn(*one, "y") == Dims{8, 6});
  const Result<Model> two =
      read("float[0,6] x, float[0,6] z, float t", "a = Add(x, z) y = Add(a, t)");
  REQUIRE_MESSAGE(two.ok(), two.error().message);
  CHECK(DimsIn(*two, "y") == Dims{8, 6});
  const Result<Model> mixed = read("float[0,6] x, float[4,6] z", "y = Concat<axis = 0>(x, z)");
  CheckFails(mixed, ErrorCode::kUsage, "the batch of input \"x\" is 0");
  REQUIRE(mixed.error().remedy.settings.size() == 1);
  CHECK(mixed.error().remedy.settings[0].value == "x=8,6");
}

TEST_CASE("batch: a given shape that stops at a node says so, and names the batch") {
  const std::string graph =
      "g (float[1,6] x) => (float[1,2,3] y) <int64[3] s = {1, 2, 3}> { [r] y = Reshape(x, s) }";
  LoadOptions shape;
  shape.input_shapes = {{"x", {8, 6}}};
  const Result<Model> batch = LoadText(graph, shape);
  CheckFails(
      batch, ErrorCode::kInvalidInput,
      "node \"r\" (Reshape) on float[8,6], int64[3] {1,2,3}: its shape has 6 elements, but its "
      "input has 48");
  REQUIRE(batch.error().remedy.settings.size() == 1);
  CHECK(batch.error().remedy.settings[0].name == "batch");
  CHECK(batch.error().remedy.settings[0].value == "8");
  CHECK(batch.error().message.find("InferenceError") == std::string::npos);
  shape.input_shapes = {{"x", {1, 7}}};
  const Result<Model> other = LoadText(graph, shape);
  CheckFails(other, ErrorCode::kInvalidInput, "or export it with open dimensions");
  CHECK(other.error().remedy.settings.empty());
}

}  // namespace

}  // namespace ckplan
