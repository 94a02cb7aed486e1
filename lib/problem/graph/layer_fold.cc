#include "lib/problem/graph/layer_fold.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "lib/base/stop.h"
#include "lib/problem/ops/op_table.h"

namespace ckplan {
namespace {

class LayerFolder {
 public:
  explicit LayerFolder(const TensorGraph& graph)
      : graph_(graph), is_output_(graph.tensors().size()) {
    for (const TensorId output : graph.outputs()) is_output_[output] = true;
  }

  LayerFold Fold() && {
    FindLayers();
    AddKeptTensors();
    TensorGraphParts parts = std::move(parts_);
    parts.backward = graph_.backward();
    parts.name = graph_.name();
    parts.parameters = graph_.constants().parameters;
    parts.parameter_gradients = graph_.constants().parameter_gradients;
    for (const std::vector<NodeId>& layer : layers_) parts.nodes.push_back(NodeOf(layer));
    for (const TensorId output : graph_.outputs()) parts.outputs.push_back(folded_id_[output]);
    // Cannot fail: sizes and costs are sums of the graph's, and layers are in topological order.
    return {TensorGraph::Create(std::move(parts)).value(), std::move(layer_of_),
            std::move(makes_result_)};
  }

 private:
  // Returns a node of the layer that `id` joins, or none.
  NodeId FindLayerToJoin(NodeId id) const {
    const Node& node = graph_.node(id);
    const OpRule& rule = RuleOfSpelling(node.op);
    const bool is_activation = rule.has(traits::kActivation);
    if (!is_activation && !rule.has(traits::kJoinsProduct)) return NodeId();
    // Parameters and constants do not count as inputs.
    if (node.inputs.size() != 1) return NodeId();
    const TensorId input = node.inputs[0];
    const Tensor& tensor = graph_.tensor(input);
    if (tensor.producer.is_none() || tensor.consumers.size() != 1 || is_output_[input]) {
      return NodeId();
    }
    const Node& producer = graph_.node(tensor.producer);
    if (producer.outputs[0] != input || HasOtherReaders(producer)) return NodeId();
    const auto& layer = layers_[static_cast<size_t>(layer_of_[tensor.producer].index())];
    const bool is_product = RuleOfSpelling(graph_.node(layer.front()).op).has(traits::kProduct);
    const bool is_activated = RuleOfSpelling(producer.op).has(traits::kActivation);
    const bool joins = is_activation || (is_product && !is_activated);
    return joins ? tensor.producer : NodeId();
  }

  bool HasOtherReaders(const Node& node) const {
    return std::any_of(node.outputs.begin() + 1, node.outputs.end(), [&](TensorId output) {
      return !graph_.tensor(output).consumers.empty() || is_output_[output];
    });
  }

  void FindLayers() {
    layer_of_.resize(graph_.nodes().size());
    for (const NodeId id : graph_.nodes().ids()) {
      PollStop();
      const NodeId before = FindLayerToJoin(id);
      if (before.is_none()) {
        layer_of_[id] = NodeId(layers_.size());
        layers_.push_back({id});
      } else {
        layer_of_[id] = layer_of_[before];
        layers_[static_cast<size_t>(layer_of_[id].index())].push_back(id);
      }
    }
  }

  // Returns true if the folded graph has the tensor: inputs and results of layers, but no saved
  // statistics.
  bool IsKept(TensorId id) const {
    const Tensor& tensor = graph_.tensor(id);
    if (tensor.kind == TensorKind::kInput) return true;
    const NodeId layer = layer_of_[tensor.producer];
    const bool is_last = layers_[static_cast<size_t>(layer.index())].back() == tensor.producer;
    const bool is_read = is_output_[id] || !tensor.consumers.empty();
    return is_last && (is_read || tensor.kind == TensorKind::kActivation);
  }

  void AddKeptTensors() {
    folded_id_.resize(graph_.tensors().size());
    makes_result_.resize(graph_.nodes().size());
    for (const TensorId id : graph_.tensors().ids()) {
      if (!IsKept(id)) continue;
      Tensor tensor = graph_.tensor(id);
      if (!tensor.producer.is_none()) makes_result_[tensor.producer] = true;
      folded_id_[id] = parts_.tensors.push_back(std::move(tensor));
    }
  }

  void AppendKept(const std::vector<TensorId>& from, std::vector<TensorId>* to) const {
    for (const TensorId id : from) {
      if (!folded_id_[id].is_none()) to->push_back(folded_id_[id]);
    }
  }

  Node NodeOf(const std::vector<NodeId>& layer) const {
    const Node& first = graph_.node(layer.front());
    Node folded;
    folded.file_id = first.file_id;
    folded.name = first.name;
    folded.op = first.op;
    AppendKept(first.inputs, &folded.inputs);
    for (const NodeId id : layer) {
      const Node& node = graph_.node(id);
      AppendKept(node.outputs, &folded.outputs);
      AppendKept(node.backward_reads, &folded.backward_reads);
      folded.forward_cost += node.forward_cost;
      folded.backward_cost += node.backward_cost;
      folded.forward_workspace = std::max(folded.forward_workspace, node.forward_workspace);
      folded.backward_workspace = std::max(folded.backward_workspace, node.backward_workspace);
      folded.is_random |= node.is_random;
    }
    std::sort(folded.backward_reads.begin(), folded.backward_reads.end());
    const auto end = std::unique(folded.backward_reads.begin(), folded.backward_reads.end());
    folded.backward_reads.erase(end, folded.backward_reads.end());
    if (layer.size() == 1) KeepPairs(first, &folded);
    return folded;
  }

  // A layer with a single node keeps that node's in-place and pass-through pairs.
  void KeepPairs(const Node& node, Node* folded) const {
    for (const InPlacePair& pair : node.in_place) {
      const InPlacePair kept{folded_id_[pair.output], folded_id_[pair.input]};
      if (!kept.output.is_none() && !kept.input.is_none()) folded->in_place.push_back(kept);
    }
    AppendKept(node.gradient_passthrough, &folded->gradient_passthrough);
  }

  const TensorGraph& graph_;
  IdVector<TensorId, bool> is_output_;
  std::vector<std::vector<NodeId>> layers_;
  IdVector<NodeId, NodeId> layer_of_;
  IdVector<NodeId, bool> makes_result_;
  IdVector<TensorId, TensorId> folded_id_;
  TensorGraphParts parts_;
};

}  // namespace

LayerFold FoldLayers(const TensorGraph& graph) { return LayerFolder(graph).Fold(); }

}  // namespace ckplan
