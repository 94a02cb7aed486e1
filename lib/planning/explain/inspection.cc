#include "lib/planning/explain/inspection.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "lib/planning/plan/assemble.h"
#include "lib/problem/graph/tensor_graph.h"
#include "lib/problem/schedule/schedule.h"
#include "lib/problem/schedule/static_allocation.h"
#include "lib/problem/schedule/training_step.h"

namespace ckplan {
namespace {

constexpr size_t kLargestTensors = 10;

// Costliest first.
std::vector<OperatorRow> OperatorsOf(const TrainingStep& step) {
  std::map<std::string, OperatorRow> by_op;
  for (const NodeId id : step.node_ids()) {
    OperatorRow& row = by_op[step.OpOf(id)];
    row.op = step.OpOf(id);
    ++row.count;
    const bool is_backward = step.IsBackward(step.RunOf(id));
    (is_backward ? row.backward_cost : row.forward_cost) += step.RunCostOf(id);
    if (!step.is_joint()) row.backward_cost += step.CostOf(Step::Backward(id));
    for (const TensorId output : step.OutputsOf(id)) {
      if (step.CountsInPeak(output)) row.outputs += step.BytesOf(output);
    }
  }
  std::vector<OperatorRow> rows;
  for (auto& [op, row] : by_op) rows.push_back(std::move(row));
  std::stable_sort(rows.begin(), rows.end(), [](const OperatorRow& a, const OperatorRow& b) {
    return a.forward_cost + a.backward_cost > b.forward_cost + b.backward_cost;
  });
  return rows;
}

std::vector<TensorRow> FindLargestTensors(const TrainingStep& step) {
  std::vector<TensorRow> rows;
  for (const TensorId id : step.tensor_ids()) {
    const NodeId producer = step.ProducerOf(id);
    rows.push_back(
        {step.RawNameOf(id), producer.is_none() ? "" : step.OpOf(producer), step.BytesOf(id)});
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const TensorRow& a, const TensorRow& b) { return a.bytes > b.bytes; });
  rows.resize(std::min(rows.size(), kLargestTensors));
  return rows;
}

// Returns the bytes that forward operations produce and backward operations read.
Bytes SavedForBackward(const JointGraph& graph) {
  IdVector<ValueId, bool> is_saved(graph.values().size());
  for (const Operation& op : graph.ops()) {
    if (op.phase == Phase::kForward) continue;
    for (const ValueId read : op.reads) {
      const ValueId storage = graph.value(read).storage;
      const OpId producer = graph.value(storage).producer;
      is_saved[storage] =
          is_saved[storage] || (!producer.is_none() && graph.op(producer).phase == Phase::kForward);
    }
  }
  Bytes saved;
  for (const ValueId id : graph.values().ids()) {
    if (is_saved[id]) saved += graph.counted_bytes(id);
  }
  return saved;
}

// Section 3 of Chen et al. 2016: with sharing, inference needs little more than its largest layer.
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

Inspection InspectGraph(const TrainingStep& step) {
  Inspection result;
  result.node_count = static_cast<int64_t>(step.node_count());
  result.tensor_count = static_cast<int64_t>(step.tensor_count());
  for (const TensorId id : step.tensor_ids()) {
    if (!step.CountsInPeak(id)) continue;
    const bool is_statistic =
        !step.is_joint() && step.forward().tensor(id).kind == TensorKind::kStatistic;
    (is_statistic ? result.statistics : result.activations) += step.BytesOf(id);
  }
  result.saved_for_backward =
      step.has_forward() ? SavedForBackward(step.forward()) : SavedForBackward(step.joint());
  if (!step.is_joint()) result.prediction = PredictionMemory(step.forward());
  result.constants = step.constants();
  result.forward_cost = step.forward_cost();
  result.backward_cost = step.backward_cost();
  result.operators = OperatorsOf(step);
  result.largest = FindLargestTensors(step);
  return result;
}

std::vector<RestoredRow> CountRestored(const std::vector<RestoredOperation>& restored) {
  std::map<std::tuple<std::string, std::string, std::vector<std::string>>, int64_t> counts;
  for (const RestoredOperation& one : restored) ++counts[{one.op, one.origin, one.replaced}];
  std::vector<RestoredRow> rows;
  for (const auto& [key, count] : counts) {
    const auto& [op, origin, replaced] = key;
    rows.push_back({op, origin, replaced, count});
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const RestoredRow& a, const RestoredRow& b) { return a.count > b.count; });
  return rows;
}

}  // namespace ckplan
