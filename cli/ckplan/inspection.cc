#include "cli/ckplan/inspection.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "lib/graph/prediction_graph.h"
#include "lib/graph/saved_for_backward.h"
#include "lib/schedule/simulate.h"
#include "lib/schedule/static_allocation.h"

namespace ckplan {
namespace {

constexpr size_t kLargestTensors = 10;

std::vector<OperatorRow> OperatorsOf(const TensorGraph& graph) {
  std::map<std::string, OperatorRow> by_op;
  for (const Node& node : graph.nodes()) {
    OperatorRow& row = by_op[node.op];
    row.op = node.op;
    ++row.count;
    row.forward_cost += node.forward_cost;
    row.backward_cost += node.backward_cost;
    for (const TensorId output : node.outputs) row.outputs += graph.tensor(output).bytes;
  }
  std::vector<OperatorRow> rows;
  for (auto& [op, row] : by_op) rows.push_back(std::move(row));
  std::stable_sort(rows.begin(), rows.end(), [](const OperatorRow& a, const OperatorRow& b) {
    return a.forward_cost + a.backward_cost > b.forward_cost + b.backward_cost;
  });
  return rows;
}

std::vector<TensorRow> LargestTensors(const TensorGraph& graph) {
  std::vector<TensorId> ids;
  for (const TensorId id : graph.tensors().ids()) ids.push_back(id);
  std::stable_sort(ids.begin(), ids.end(), [&](TensorId a, TensorId b) {
    return graph.tensor(a).bytes > graph.tensor(b).bytes;
  });
  ids.resize(std::min(ids.size(), kLargestTensors));
  std::vector<TensorRow> rows;
  for (const TensorId id : ids) {
    const Tensor& tensor = graph.tensor(id);
    const bool is_made = !tensor.producer.is_none();
    rows.push_back({tensor.name, is_made ? graph.node(tensor.producer).op : "", tensor.bytes});
  }
  return rows;
}

// Section 3 of Chen et al. 2016: with sharing, a prediction needs little more than its largest
// layer.
StaticAllocations PredictionMemory(const TensorGraph& graph) {
  const TensorGraph prediction = PredictionGraph(graph);
  std::vector<NodeId> order;
  for (const NodeId id : prediction.nodes().ids()) order.push_back(id);
  const Schedule schedule = KeepAllSchedule(order);
  return {StaticAllocation(prediction, schedule, ArenaStrategy::kNone),
          StaticAllocation(prediction, schedule, ArenaStrategy::kInplace),
          StaticAllocation(prediction, schedule, ArenaStrategy::kSharing)};
}

}  // namespace

Inspection Inspect(const Source& source) {
  const TensorGraph& graph = source.graph;
  Inspection result;
  result.model = source.identity;
  result.request = source.request;
  result.node_count = static_cast<int64_t>(graph.nodes().size());
  result.tensor_count = static_cast<int64_t>(graph.tensors().size());
  for (const Tensor& tensor : graph.tensors()) {
    if (tensor.kind == TensorKind::kActivation) result.activations += tensor.bytes;
    if (tensor.kind == TensorKind::kStatistic) result.statistics += tensor.bytes;
  }
  result.saved_for_backward = SavedForBackward(graph);
  result.keep_all_peak = KeepAllPeak(graph);
  result.prediction = PredictionMemory(graph);
  result.constants = graph.constants();
  result.optimizer_state =
      OptimizerState(source.request.optimizer, graph.constants().parameter_gradients);
  result.forward_cost = graph.forward_cost();
  result.backward_cost = graph.backward_cost();
  result.operators = OperatorsOf(graph);
  result.largest = LargestTensors(graph);
  result.warnings = source.warnings;
  return result;
}

}  // namespace ckplan
