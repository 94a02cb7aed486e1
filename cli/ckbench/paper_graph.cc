#include "cli/ckbench/paper_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lib/problem/cost/cost_model.h"

namespace ckplan {
namespace {

using TensorMap = IdVector<TensorId, TensorId>;  // None if the tensor is removed.

void Rename(const TensorMap& map, std::vector<TensorId>* list) {
  std::vector<TensorId> renamed;
  for (const TensorId id : *list) {
    if (!map[id].is_none()) renamed.push_back(map[id]);
  }
  *list = std::move(renamed);
}

void Rename(const TensorMap& map, Node* node) {
  Rename(map, &node->inputs);
  Rename(map, &node->outputs);
  Rename(map, &node->backward_reads);
  std::sort(node->backward_reads.begin(), node->backward_reads.end());
  const auto end = std::unique(node->backward_reads.begin(), node->backward_reads.end());
  node->backward_reads.erase(end, node->backward_reads.end());
  Rename(map, &node->gradient_passthrough);
  std::vector<InPlacePair> pairs;
  for (const InPlacePair& pair : node->in_place) {
    const InPlacePair renamed{map[pair.output], map[pair.input]};
    if (!renamed.output.is_none() && !renamed.input.is_none()) pairs.push_back(renamed);
  }
  node->in_place = std::move(pairs);
}

// Returns the graph with each tensor replaced by another tensor or removed, and without some nodes.
// `replaced_by` names old tensors; a tensor that stays is replaced by itself.
TensorGraph Rebuild(TensorGraphParts parts, const TensorMap& replaced_by,
                    const IdVector<NodeId, bool>& is_removed) {
  IdVector<TensorId, Tensor> tensors;
  TensorMap numbers(parts.tensors.size());
  for (const TensorId id : parts.tensors.ids()) {
    if (replaced_by[id] == id) numbers[id] = tensors.push_back(parts.tensors[id]);
  }
  TensorMap map(parts.tensors.size());
  for (const TensorId id : parts.tensors.ids()) {
    TensorId end = id;
    while (!end.is_none() && replaced_by[end] != end) end = replaced_by[end];
    if (!end.is_none()) map[id] = numbers[end];
  }
  IdVector<NodeId, Node> nodes;
  for (const NodeId id : parts.nodes.ids()) {
    if (is_removed[id]) continue;
    Node node = std::move(parts.nodes[id]);
    Rename(map, &node);
    nodes.push_back(std::move(node));
  }
  Rename(map, &parts.outputs);
  parts.tensors = std::move(tensors);
  parts.nodes = std::move(nodes);
  return TensorGraph::Create(std::move(parts)).value();
}

TensorMap SameTensors(const TensorGraph& graph) {
  TensorMap same;
  for (const TensorId id : graph.tensors().ids()) same.push_back(id);
  return same;
}

IdVector<NodeId, bool> NoNodes(const TensorGraph& graph) {
  return IdVector<NodeId, bool>(graph.nodes().size());
}

}  // namespace

Result<TensorGraph> LoadPaperModel(const std::string& models, const std::string& name,
                                   int64_t batch, Autograd autograd, int64_t side,
                                   std::string_view cost) {
  LoadOptions options;
  if (side > 0) {
    options.input_shapes["x"] = {batch, 3, side, side};
  } else if (batch > 0) {
    options.dims["N"] = batch;
  }
  CKPLAN_ASSIGN_OR_RETURN(const Model model,
                          LoadModel(fmt::format("{}/{}.onnx", models, name), options));
  LowerOptions lower;
  lower.autograd = autograd;
  CKPLAN_ASSIGN_OR_RETURN(lower.cost, ParseCostModel(cost));
  CKPLAN_ASSIGN_OR_RETURN(ModelGraph lowered, LowerModel(model, lower));
  return std::move(lowered.graph);
}

TensorGraph WithoutStatistics(const TensorGraph& graph) {
  TensorGraphParts parts = PartsOf(graph);
  for (Node& node : parts.nodes) {
    if (node.op == "MaxPool") node.backward_reads = {node.inputs[0], node.outputs[0]};
  }
  TensorMap replaced_by = SameTensors(graph);
  for (const TensorId id : graph.tensors().ids()) {
    if (graph.tensor(id).kind == TensorKind::kStatistic) replaced_by[id] = TensorId();
  }
  return Rebuild(std::move(parts), replaced_by, NoNodes(graph));
}

TensorGraph WithoutNodes(const TensorGraph& graph,
                         const std::function<bool(const Node&)>& is_removed) {
  TensorMap replaced_by = SameTensors(graph);
  IdVector<NodeId, bool> gone = NoNodes(graph);
  for (const NodeId id : graph.nodes().ids()) {
    const Node& node = graph.node(id);
    if (node.inputs.size() != 1 || !is_removed(node)) continue;
    gone[id] = true;
    for (const TensorId output : node.outputs) replaced_by[output] = TensorId();
    replaced_by[node.outputs[0]] = node.inputs[0];
  }
  return Rebuild(PartsOf(graph), replaced_by, gone);
}

bool IsIdlePooling(const TensorGraph& graph, const Node& node) {
  return node.op == "AveragePool" &&
         graph.tensor(node.inputs[0]).bytes == graph.tensor(node.outputs[0]).bytes;
}

TensorGraph WithChainedConcatenations(const TensorGraph& graph) {
  TensorGraphParts parts = PartsOf(graph);
  std::vector<NodeId> earlier;  // Earlier concatenations, in the graph's order.
  for (const NodeId id : graph.nodes().ids()) {
    const std::vector<TensorId>& inputs = graph.node(id).inputs;
    if (graph.node(id).op != "Concat") continue;
    for (const NodeId before : earlier) {
      const std::vector<TensorId>& held = graph.node(before).inputs;
      if (held.size() + 1 != inputs.size()) continue;
      if (!std::equal(held.begin(), held.end(), inputs.begin())) continue;
      parts.nodes[id].inputs = {graph.node(before).outputs[0], inputs.back()};
      break;
    }
    earlier.push_back(id);
  }
  // The first block's input is not a concatenation, but the first concatenation holds it.
  for (Node& node : parts.nodes) {
    if (node.op == "Concat") node.backward_reads.clear();
  }
  return TensorGraph::Create(std::move(parts)).value();
}

TensorGraph WithBatch(const TensorGraph& graph, int64_t batch, int64_t of) {
  TensorGraphParts parts = PartsOf(graph);
  for (Tensor& tensor : parts.tensors) tensor.bytes = Bytes(batch * tensor.bytes.count() / of);
  return TensorGraph::Create(std::move(parts)).value();
}

}  // namespace ckplan
