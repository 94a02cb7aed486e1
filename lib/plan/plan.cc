#include "lib/plan/plan.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "lib/base/printable.h"

namespace ckplan {

std::string_view NameOf(NodeAction action) {
  switch (action) {
    case NodeAction::kKeep:
      return "keep";
    case NodeAction::kRecompute:
      return "recompute";
    case NodeAction::kTransient:
      return "transient";
    case NodeAction::kDrop:
      return "drop";
  }
  return "";
}

std::map<std::string, int64_t> OpsetsInFiles(const ModelIdentity& model) {
  std::map<std::string, int64_t> opsets;
  for (const auto& [domain, version] : model.opsets) {
    opsets.emplace(WellFormedUtf8(domain), version);
  }
  return opsets;
}

NodeLabel LabelOf(const TensorGraph& graph, NodeId id) {
  const Node& node = graph.node(id);
  NodeLabel label{WellFormedUtf8(node.name), WellFormedUtf8(node.op), {}};
  for (const TensorId output : node.outputs) {
    const Tensor& tensor = graph.tensor(output);
    label.outputs.push_back({tensor.file_id, WellFormedUtf8(tensor.name), tensor.bytes});
  }
  return label;
}

IdVector<NodeId, NodeLabel> LabelsOf(const TensorGraph& graph) {
  IdVector<NodeId, NodeLabel> labels;
  for (const NodeId id : graph.nodes().ids()) labels.push_back(LabelOf(graph, id));
  return labels;
}

NodeLabel LabelOf(const JointGraph& graph, OpId id) {
  const Operation& op = graph.op(id);
  NodeLabel label{WellFormedUtf8(op.name), WellFormedUtf8(op.op), {}};
  for (const ValueId write : op.writes) {
    const Value& value = graph.value(write);
    label.outputs.push_back({value.file_id, WellFormedUtf8(value.name), value.bytes});
  }
  return label;
}

IdVector<NodeId, NodeLabel> LabelsOf(const JointGraph& graph) {
  IdVector<NodeId, NodeLabel> labels;
  for (const OpId id : graph.ops().ids()) labels.push_back(LabelOf(graph, id));
  return labels;
}

Bytes OptimizerState(Optimizer optimizer, Bytes parameter_gradients) {
  switch (optimizer) {
    case Optimizer::kSgd:
      return Bytes(0);
    case Optimizer::kMomentum:
      return parameter_gradients;
    case Optimizer::kAdam:
      return 2 * parameter_gradients;
  }
  return Bytes(0);
}

double ProductOf(const CurvePoint& point, Cost step) {
  return static_cast<double>(point.peak.count()) *
         static_cast<double>((step + point.overhead).count());
}

bool IsBetterPoint(const CurvePoint& a, const CurvePoint& b, Cost step) {
  return std::tuple(ProductOf(a, step), a.peak, a.overhead) <
         std::tuple(ProductOf(b, step), b.peak, b.overhead);
}

std::vector<CurvePoint> FrontOf(std::vector<CurvePoint> points) {
  std::sort(points.begin(), points.end(), [](const CurvePoint& a, const CurvePoint& b) {
    return std::pair(a.peak, a.overhead) < std::pair(b.peak, b.overhead);
  });
  std::vector<CurvePoint> front;
  for (const CurvePoint& point : points) {
    if (front.empty() || point.overhead < front.back().overhead) front.push_back(point);
  }
  return front;
}

Bytes TotalConstants(const ConstantMemory& constants, Bytes optimizer_state) {
  return constants.parameters + constants.parameter_gradients + constants.inputs + optimizer_state;
}

Bytes TotalConstants(const PlanFigures& figures) {
  return TotalConstants(figures.constants, figures.optimizer_state);
}

}  // namespace ckplan
