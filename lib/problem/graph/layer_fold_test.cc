#include "lib/problem/graph/layer_fold.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "lib/testing/graph_text.h"

namespace ckplan {
namespace {

// Parses the text. A node's operator is its name up to the first digit: "Conv1" is a Conv.
TensorGraph GraphOfOps(std::string_view text) {
  TensorGraphParts parts = PartsOf(GraphFromText(text));
  for (Node& node : parts.nodes)
    node.op = node.name.substr(0, node.name.find_first_of("0123456789"));
  return TensorGraph::Create(std::move(parts)).value();
}

std::vector<std::string> LayersOf(std::string_view text) {
  const TensorGraph graph = GraphOfOps(text);
  const LayerFold fold = FoldLayers(graph);
  std::vector<std::string> layers(fold.graph.nodes().size());
  for (const NodeId node : graph.nodes().ids()) {
    std::string& layer = layers[static_cast<size_t>(fold.layer_of[node].index())];
    layer += (layer.empty() ? "" : " ") + graph.node(node).name;
  }
  return layers;
}

using Layers = std::vector<std::string>;

}  // namespace

TEST_CASE("layers: conv, bn and relu are one, pooling is its own (Hong Fig. 3)") {
  CHECK(
      LayersOf("Conv1:8 -> BatchNormalization1:8 -> Relu1:8 -> MaxPool1:2 -> Gemm1:3 -> Relu2:3") ==
      Layers{"Conv1 BatchNormalization1 Relu1", "MaxPool1", "Gemm1 Relu2"});
}

TEST_CASE("layers: a bias joins the product before it, an addition of two results does not") {
  CHECK(LayersOf("MatMul1:8 -> Add1:8 -> Gelu1:8 -> MatMul2:8 -> Add2:8; MatMul1 -> Add2") ==
        Layers{"MatMul1", "Add1 Gelu1", "MatMul2", "Add2"});
  CHECK(LayersOf("MatMul1:8 -> Add1:8 -> Gelu1:8 -> MatMul2:8") ==
        Layers{"MatMul1 Add1 Gelu1", "MatMul2"});
}

TEST_CASE("layers: an activation shares the layer of whatever it alone reads") {
  CHECK(LayersOf("Conv1:8 -> Add1:8 -> Relu1:8 -> Conv2:8; Conv1 -> Conv3:8 -> Add1") ==
        Layers{"Conv1", "Conv3", "Add1 Relu1", "Conv2"});
  // Pre-activation order: the normalisation does not follow a convolution.
  CHECK(LayersOf("Concat1:8 -> BatchNormalization1:8 -> Relu1:8 -> Conv1:4") ==
        Layers{"Concat1", "BatchNormalization1 Relu1", "Conv1"});
  // The normalisation follows an activation, not a convolution.
  CHECK(LayersOf("Conv1:8 -> Relu1:8 -> BatchNormalization1:8") ==
        Layers{"Conv1 Relu1", "BatchNormalization1"});
}

TEST_CASE("layers: a layer has the size of its result and the cost of its nodes") {
  const TensorGraph graph =
      GraphOfOps("Conv1:8@10 -> BatchNormalization1:7@2 -> Relu1:6@1 -> Conv2:5@9");
  const LayerFold fold = FoldLayers(graph);
  REQUIRE(fold.graph.nodes().size() == 2);
  const Node& layer = fold.graph.node(NodeId(0));
  CHECK(layer.name == "Conv1");
  CHECK(layer.op == "Conv");
  CHECK(layer.forward_cost == Cost(13));
  REQUIRE(layer.outputs.size() == 1);
  CHECK(fold.graph.tensor(layer.outputs[0]).bytes == Bytes(6));
  CHECK(fold.graph.forward_cost() == graph.forward_cost());
  CHECK(!fold.makes_result[NodeId(0)]);
  CHECK(fold.makes_result[NodeId(2)]);
  CHECK(fold.graph.outputs().size() == 1);
}

TEST_CASE("layers: a result that the graph returns ends its layer") {
  TensorGraphParts parts = PartsOf(GraphOfOps("Conv1:8 -> Relu1:8"));
  parts.outputs.push_back(TensorId(0));
  const LayerFold fold = FoldLayers(TensorGraph::Create(std::move(parts)).value());
  CHECK(fold.graph.nodes().size() == 2);
  CHECK(fold.graph.outputs().size() == 2);
}

}  // namespace ckplan
