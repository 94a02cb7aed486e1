#include "lib/model/list_parameters.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "lib/model/testing_proto.h"

namespace ckplan {
namespace {

using Kind = Parameter::Kind;

struct Listed {
  ModelGraph graph;
  std::string text;  // For example "w trained 16 bytes, 4 in 4 rows, read by MatMul Add; ...".
};

Listed List(const std::string& graph, const LoadOptions& options = {}) {
  const Model model = LoadProto(ParseGraph(graph), options).value();
  LowerOptions lower;
  lower.cost = ParseCostModel("flops").value();
  lower.lists_parameters = true;
  Listed listed{LowerModel(model, lower).value(), ""};
  for (const Parameter& parameter : listed.graph.parameters) {
    constexpr const char* kKinds[] = {"trained", "frozen", "buffer"};
    listed.text += parameter.name + " " + kKinds[static_cast<size_t>(parameter.kind)] + " " +
                   std::to_string(parameter.bytes.count()) + " bytes, " +
                   std::to_string(parameter.elements) + " in " + std::to_string(parameter.rows) +
                   " rows, read by";
    for (const NodeId reader : parameter.readers) {
      listed.text += " " + listed.graph.graph.node(reader).op;
    }
    listed.text += "; ";
  }
  return listed;
}

constexpr const char* kNet =
    "g (float[8,4] x) => (float[8,2] y) <float[4,4] w = {1,2,3,4,1,2,3,4,1,2,3,4,1,2,3,4}, "
    "float[4] bias = {1,2,3,4}, float[2,4] head = {1,2,3,4,5,6,7,8}> "
    "{ a = MatMul(x, w) b = Add(a, bias) c = MatMul(b, w) t = Transpose(head) y = MatMul(c, t) }";

TEST_CASE("parameters: each with its size and the nodes that read it or values made from it") {
  CHECK(List(kNet).text ==
        "w trained 64 bytes, 16 in 4 rows, read by MatMul MatMul; "
        "bias trained 16 bytes, 4 in 4 rows, read by Add; "
        "head trained 32 bytes, 8 in 2 rows, read by MatMul; ");
}

TEST_CASE("parameters: frozen parameters and buffers are distinguished") {
  LoadOptions options;
  options.freeze = {"w"};
  CHECK(List(kNet, options).text.starts_with("w frozen 64 bytes"));
  const Listed norm = List(
      "g (float[2,2,4,4] x) => (float[2,2,4,4] y) <float[2] s = {1,1}, float[2] b = {0,0}, "
      "float[2] m = {0,0}, float[2] v = {1,1}> { y = BatchNormalization(x, s, b, m, v) }");
  CHECK(norm.text ==
        "s trained 8 bytes, 2 in 2 rows, read by BatchNormalization; "
        "b trained 8 bytes, 2 in 2 rows, read by BatchNormalization; "
        "m buffer 8 bytes, 2 in 2 rows, read by BatchNormalization; "
        "v buffer 8 bytes, 2 in 2 rows, read by BatchNormalization; ");
}

TEST_CASE("parameters: their bytes are those that the graph counts, for every model") {
  for (const char* const name : {"resnet18", "gpt2_small", "squeezenet1_1"}) {
    CAPTURE(name);
    LoadOptions load;
    const std::string path = std::string("testdata/models/") + name + ".onnx";
    load.dims = {{"N", 2}};
    Result<Model> model = LoadModel(path, load);
    if (!model.ok()) {
      load.dims = {{"N", 2}, {"T", 8}};
      model = LoadModel(path, load);
    }
    REQUIRE_MESSAGE(model.ok(), model.error().message);
    LowerOptions lower;
    lower.cost = ParseCostModel("flops").value();
    CHECK(LowerModel(*model, lower).value().parameters.empty());
    lower.lists_parameters = true;
    const ModelGraph lowered = LowerModel(*model, lower).value();
    Bytes all, trained;
    for (const Parameter& parameter : lowered.parameters) {
      all += parameter.bytes;
      if (parameter.kind == Kind::kTrained) trained += parameter.bytes;
      CHECK_FALSE(parameter.readers.empty());
      CHECK(std::is_sorted(parameter.readers.begin(), parameter.readers.end()));
    }
    CHECK(all == lowered.graph.constants().parameters);
    CHECK(trained == lowered.graph.constants().parameter_gradients);
  }
}

}  // namespace
}  // namespace ckplan
