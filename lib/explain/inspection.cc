#include "lib/explain/inspection.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "lib/graph/prediction_graph.h"
#include "lib/graph/saved_for_backward.h"
#include "lib/plan/assemble_joint.h"
#include "lib/schedule/schedule.h"
#include "lib/schedule/static_allocation.h"

namespace ckplan {
namespace {

constexpr size_t kLargestTensors = 10;

std::vector<OperatorRow> CostliestFirst(std::map<std::string, OperatorRow> by_op) {
  std::vector<OperatorRow> rows;
  for (auto& [op, row] : by_op) rows.push_back(std::move(row));
  std::stable_sort(rows.begin(), rows.end(), [](const OperatorRow& a, const OperatorRow& b) {
    return a.forward_cost + a.backward_cost > b.forward_cost + b.backward_cost;
  });
  return rows;
}

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
  return CostliestFirst(std::move(by_op));
}

std::vector<OperatorRow> OperatorsOf(const JointGraph& graph) {
  std::map<std::string, OperatorRow> by_op;
  for (const Operation& op : graph.ops()) {
    OperatorRow& row = by_op[op.op];
    row.op = op.op;
    ++row.count;
    (op.phase == Phase::kForward ? row.forward_cost : row.backward_cost) += op.cost;
    for (const ValueId write : op.writes) row.outputs += graph.counted_bytes(write);
  }
  return CostliestFirst(std::move(by_op));
}

std::vector<TensorRow> LargestOf(std::vector<TensorRow> rows) {
  std::stable_sort(rows.begin(), rows.end(),
                   [](const TensorRow& a, const TensorRow& b) { return a.bytes > b.bytes; });
  rows.resize(std::min(rows.size(), kLargestTensors));
  return rows;
}

std::vector<TensorRow> LargestTensors(const TensorGraph& graph) {
  std::vector<TensorRow> rows;
  for (const Tensor& tensor : graph.tensors()) {
    const bool is_made = !tensor.producer.is_none();
    rows.push_back({tensor.name, is_made ? graph.node(tensor.producer).op : "", tensor.bytes});
  }
  return LargestOf(std::move(rows));
}

std::vector<TensorRow> LargestValues(const JointGraph& graph) {
  std::vector<TensorRow> rows;
  for (const Value& value : graph.values()) {
    const bool is_made = !value.maker.is_none();
    rows.push_back({value.name, is_made ? graph.op(value.maker).op : "", value.bytes});
  }
  return LargestOf(std::move(rows));
}

// The bytes that operations of the forward phase make and operations of the backward phase read.
Bytes SavedForBackward(const JointGraph& graph) {
  IdVector<ValueId, bool> is_saved(graph.values().size());
  for (const Operation& op : graph.ops()) {
    if (op.phase == Phase::kForward) continue;
    for (const ValueId read : op.reads) {
      const ValueId storage = graph.value(read).storage;
      const OpId maker = graph.value(storage).maker;
      is_saved[storage] =
          is_saved[storage] || (!maker.is_none() && graph.op(maker).phase == Phase::kForward);
    }
  }
  Bytes saved;
  for (const ValueId id : graph.values().ids()) {
    if (is_saved[id]) saved += graph.counted_bytes(id);
  }
  return saved;
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

ModelMeasures MeasuresOf(const Inspection& one) {
  const ConstantMemory& constants = one.constants;
  return {
      one.keep_all_peak,
      constants.parameters + constants.parameter_gradients + constants.inputs + one.optimizer_state,
      one.activations,
      one.saved_for_backward,
      constants.parameters,
      static_cast<int64_t>(one.warnings.size())};
}

Inspection InspectGraph(const TensorGraph& graph) {
  Inspection result;
  result.node_count = static_cast<int64_t>(graph.nodes().size());
  result.tensor_count = static_cast<int64_t>(graph.tensors().size());
  for (const Tensor& tensor : graph.tensors()) {
    if (tensor.kind == TensorKind::kActivation) result.activations += tensor.bytes;
    if (tensor.kind == TensorKind::kStatistic) result.statistics += tensor.bytes;
  }
  result.saved_for_backward = SavedForBackward(graph);
  result.prediction = PredictionMemory(graph);
  result.constants = graph.constants();
  result.forward_cost = graph.forward_cost();
  result.backward_cost = graph.backward_cost();
  result.operators = OperatorsOf(graph);
  result.largest = LargestTensors(graph);
  return result;
}

Inspection InspectGraph(const JointGraph& graph) {
  Inspection result;
  result.node_count = static_cast<int64_t>(graph.ops().size());
  result.tensor_count = static_cast<int64_t>(graph.values().size());
  for (const ValueId id : graph.values().ids()) result.activations += graph.counted_bytes(id);
  result.saved_for_backward = SavedForBackward(graph);
  result.constants = JointConstants(graph);
  result.forward_cost = PhaseCost(graph, Phase::kForward);
  result.backward_cost = PhaseCost(graph, Phase::kBackward);
  result.operators = OperatorsOf(graph);
  result.largest = LargestValues(graph);
  return result;
}

}  // namespace ckplan
