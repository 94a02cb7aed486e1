#include "lib/files/model/list_parameters.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "lib/files/model/testing_proto.h"

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

constexpr const char* kTrainedNet =
    "g (float[8,4] x) => (float[8,2] y) <float[4,4] w = {1,2,3,4,1,2,3,4,1,2,3,4,1,2,3,4}, "
    "float[4] bias = {1,2,3,4}, float[2,4] head = {1,2,3,4,5,6,7,8}> "
    "{ a = MatMul(x, w) b = Add(a, bias) c = MatMul(b, w) t = Transpose(head) y = MatMul(c, t) }";

TEST_CASE("parameters: each with its size and the nodes that read it or values made from it") {
  CHECK(List(kTrainedNet).text ==
        "w trained 64 bytes, 16 in 4 rows, read by MatMul MatMul; "
        "bias trained 16 bytes, 4 in 4 rows, read by Add; "
        "head trained 32 bytes, 8 in 2 rows, read by MatMul; ");
}

TEST_CASE("parameters: frozen parameters and buffers are distinguished") {
  LoadOptions options;
  options.freeze = {"w"};
  CHECK(List(kTrainedNet, options).text.starts_with("w frozen 64 bytes"));
  const Listed norm = List(
      "g (float[2,2,4,4] x) => (float[2,2,4,4] y) <float[2] s = {1,1}, float[2] b = {0,0}, "
      "float[2] m = {0,0}, float[2] v = {1,1}> { y = BatchNormalization(x, s, b, m, v) }");
  CHECK(norm.text ==
        "s trained 8 bytes, 2 in 2 rows, read by BatchNormalization; "
        "b trained 8 bytes, 2 in 2 rows, read by BatchNormalization; "
        "m buffer 8 bytes, 2 in 2 rows, read by BatchNormalization; "
        "v buffer 8 bytes, 2 in 2 rows, read by BatchNormalization; ");
}

TEST_CASE("parameters: the graph has the sizes and types of those that are trained") {
  CHECK(List(kTrainedNet).graph.graph.optimized().tensors ==
        std::vector<OptimizedTensors>{{4, 4, 1}, {8, 4, 1}, {16, 4, 1}});
  LoadOptions options;
  options.freeze = {"w"};
  CHECK(List(kTrainedNet, options).graph.graph.optimized().tensors ==
        std::vector<OptimizedTensors>{{4, 4, 1}, {8, 4, 1}});
  constexpr const char* kHalf =
      "g (float16[2,4] x) => (float16[2,4] y) <float16[4,4] w = [\"location\": \"none\"], "
      "float16[4,4] v = [\"location\": \"none\"]> { a = MatMul(x, w) y = MatMul(a, v) }";
  CHECK(List(kHalf).graph.graph.optimized().tensors == std::vector<OptimizedTensors>{{16, 2, 2}});
  // Stored activations change nothing about parameters.
  options.freeze = {};
  options.activation_type = ActivationType::kFloat32;
  CHECK(List(kHalf, options).graph.graph.optimized().tensors ==
        std::vector<OptimizedTensors>{{16, 2, 2}});
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
    std::vector<OptimizedTensors> tensors;
    for (const Parameter& parameter : lowered.parameters) {
      all += parameter.bytes;
      if (parameter.kind == Kind::kTrained) {
        trained += parameter.bytes;
        tensors.push_back(parameter.AsOptimized());
      }
      CHECK_FALSE(parameter.readers.empty());
      CHECK(std::is_sorted(parameter.readers.begin(), parameter.readers.end()));
    }
    CHECK(all == lowered.graph.constants().parameters);
    CHECK(trained == lowered.graph.constants().parameter_gradients);
    CHECK(lowered.graph.optimized().bytes == trained);
    CHECK(lowered.graph.optimized().tensors == Merged(tensors));
  }
}

}  // namespace
}  // namespace ckplan
