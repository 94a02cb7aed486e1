#include "lib/problem/graph/prediction_graph.h"

#include <algorithm>
#include <utility>

namespace ckplan {
namespace {

bool IsReadForward(const TensorGraph& graph, TensorId id) {
  const std::vector<TensorId>& outputs = graph.outputs();
  return !graph.tensor(id).consumers.empty() ||
         std::find(outputs.begin(), outputs.end(), id) != outputs.end();
}

}  // namespace

TensorGraph PredictionGraph(const TensorGraph& graph) {
  TensorGraphParts parts = PartsOf(graph);
  parts.parameter_gradients = Bytes(0);
  for (const TensorId id : parts.tensors.ids()) {
    Tensor& tensor = parts.tensors[id];
    tensor.requires_grad = false;
    if (tensor.kind == TensorKind::kStatistic && !IsReadForward(graph, id)) tensor.bytes = Bytes(0);
  }
  for (Node& node : parts.nodes) {
    node.backward_reads.clear();
    node.gradient_passthrough.clear();
    node.backward_cost = Cost(0);
    node.backward_workspace = Bytes(0);
  }
  // The graph was valid, and no size or cost grew.
  return TensorGraph::Create(std::move(parts)).value();
}

}  // namespace ckplan
