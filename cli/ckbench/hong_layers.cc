#include "cli/ckbench/hong_layers.h"

#include <algorithm>
#include <array>
#include <utility>

#include "cli/ckbench/paper_graph.h"
#include "lib/problem/schedule/lower.h"
#include "lib/problem/schedule/simulate.h"
#include "lib/problem/schedule/unfold.h"

namespace ckplan {
namespace {

const std::array kHongNetworks = {
    HongNetwork{"vgg19",
                "VGG-19",
                false,
                {2, 4, 6, 9, 11, 14, 16, 19, 21, 23, 24},
                {3, 6, 24},
                {3, 6, 24},
                {5, 10, 15, 20, 24}},
    HongNetwork{"alexnet",
                "AlexNet",
                true,
                {2, 4, 6, 8, 12, 14, 15},
                {2, 4, 12, 15},
                {2, 4, 12, 15},
                {4, 8, 12, 15}},
};

// The paper's AlexNet has a layer for Flatten, as large as its input, although PyTorch runs no
// operation for Flatten. Its Dropout is not done in place.
TensorGraph WithFlatten(const TensorGraph& graph) {
  TensorGraphParts parts = PartsOf(graph);
  for (Node& node : parts.nodes) {
    if (node.op == "Dropout") node.in_place.clear();
  }
  int64_t file_id = 0;
  for (const Tensor& tensor : parts.tensors) file_id = std::max(file_id, tensor.file_id + 1);
  for (const NodeId id : graph.nodes().ids()) {
    if (graph.node(id).op != "AveragePool") continue;
    const TensorId pooled = graph.node(id).outputs[0];
    Node flatten;
    flatten.file_id = static_cast<int64_t>(parts.nodes.size());
    for (const Node& node : parts.nodes) {
      flatten.file_id = std::max(flatten.file_id, node.file_id + 1);
    }
    flatten.name = flatten.op = "Flatten";
    flatten.inputs = {pooled};
    Tensor flat = graph.tensor(pooled);
    flat.file_id = file_id;
    flat.name = "flat";
    flatten.outputs = {parts.tensors.push_back(std::move(flat))};
    for (const NodeId reader : graph.tensor(pooled).consumers) {
      Node& node = parts.nodes[reader];
      std::replace(node.inputs.begin(), node.inputs.end(), pooled, flatten.outputs[0]);
      std::replace(node.backward_reads.begin(), node.backward_reads.end(), pooled,
                   flatten.outputs[0]);
      for (InPlacePair& pair : node.in_place) {
        if (pair.input == pooled) pair.input = flatten.outputs[0];
      }
    }
    parts.nodes.push_back(std::move(flatten));
    break;
  }
  return TensorGraph::Create(std::move(parts)).value();
}

std::vector<int64_t> Shown(const LayerPositions& positions) {
  std::vector<int64_t> shown;
  for (const size_t position : positions) {
    if (position > 0) shown.push_back(static_cast<int64_t>(position));
  }
  return shown;
}

}  // namespace

std::span<const HongNetwork> HongNetworks() { return kHongNetworks; }

Result<HongLayers> LoadHongLayers(const std::string& models, const HongNetwork& network,
                                  int64_t batch, std::string_view cost) {
  CKPLAN_ASSIGN_OR_RETURN(TensorGraph graph,
                          LoadPaperModel(models, network.model, batch, Autograd::kTorch, 0, cost));
  if (!network.keeps_small_layers) {
    graph = WithoutNodes(graph, [&](const Node& node) {
      return node.op == "Dropout" || IsIdlePooling(graph, node);
    });
  }
  const Simulation keep_all = Simulator(graph).Run(KeepAllInOwnOrder(graph)).value();
  const Bytes keep_all_peak = keep_all.peak + graph.constants().inputs;
  if (network.keeps_small_layers) graph = WithFlatten(graph);
  LayerFold fold = FoldLayers(graph);
  LayerList list = ListLayers(fold.graph, VertexGraph(fold.graph));
  return HongLayers{std::move(graph), std::move(fold), std::move(list), keep_all_peak};
}

LayerPositions WithInput(LayerPositions positions) {
  positions.insert(positions.begin(), 0);
  return positions;
}

Schedule CheckpointedStep(const HongLayers& layers, const LayerPositions& checkpoints) {
  KeptSet kept{IdVector<NodeId, bool>(layers.fold.graph.nodes().size())};
  for (const size_t i : checkpoints) {
    if (i > 0) kept.is_kept[layers.list.nodes[i]] = true;
  }
  return LowerStrategy(layers.graph, Unfold(layers.fold, kept));
}

Figure HongSetFigure(const std::string& name, const std::string& how, const LayerList& list,
                     const LayerPositions& ours, const LayerPositions& paper,
                     CheckpointObjective objective) {
  Figure figure;
  figure.subject = name;
  figure.quantity = how;
  figure.unit = FigureUnit::kCheckpoints;
  figure.our_set = Shown(ours);
  figure.paper_set = Shown(paper);
  figure.match = figure.our_set == figure.paper_set                ? SetMatch::kSame
                 : objective(list, ours) == objective(list, paper) ? SetMatch::kTie
                                                                   : SetMatch::kDiffers;
  return figure;
}

Bytes HongConstants(const TensorGraph& graph) {
  // The momentum is as large as the gradients.
  return graph.constants().parameters + 2 * graph.constants().parameter_gradients;
}

}  // namespace ckplan
