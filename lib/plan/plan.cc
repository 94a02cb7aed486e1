#include "lib/plan/plan.h"

#include "lib/base/printable.h"

namespace ckplan {
namespace {

// For a node and its tensors, or for an operation and its values.
template <typename Maker, typename Made>
NodeLabel MakeLabel(const Maker& maker, const std::vector<TensorId>& outputs,
                    const IdVector<TensorId, Made>& all) {
  NodeLabel label{WellFormedUtf8(maker.name), WellFormedUtf8(maker.op), {}};
  for (const TensorId output : outputs) {
    const Made& made = all[output];
    label.outputs.push_back({made.file_id, WellFormedUtf8(made.name), made.bytes});
  }
  return label;
}

}  // namespace

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

NodeLabel LabelOf(const TensorGraph& graph, NodeId id) {
  const Node& node = graph.node(id);
  return MakeLabel(node, node.outputs, graph.tensors());
}

IdVector<NodeId, NodeLabel> LabelsOf(const TensorGraph& graph) {
  IdVector<NodeId, NodeLabel> labels;
  for (const NodeId id : graph.nodes().ids()) labels.push_back(LabelOf(graph, id));
  return labels;
}

NodeLabel LabelOf(const JointGraph& graph, OpId id) {
  const Operation& op = graph.op(id);
  return MakeLabel(op, op.writes, graph.values());
}

IdVector<NodeId, NodeLabel> LabelsOf(const JointGraph& graph) {
  IdVector<NodeId, NodeLabel> labels;
  for (const OpId id : graph.ops().ids()) labels.push_back(LabelOf(graph, id));
  return labels;
}

Bytes OptimizerState(Optimizer optimizer, Bytes optimized) {
  switch (optimizer) {
    case Optimizer::kSgd:
      return Bytes(0);
    case Optimizer::kMomentum:
      return optimized;
    case Optimizer::kAdam:
      return 2 * optimized;
  }
  return Bytes(0);
}

Bytes TotalConstants(const ConstantMemory& constants, Bytes optimizer_state) {
  return constants.parameters + constants.parameter_gradients + constants.inputs +
         constants.unsharded + optimizer_state;
}

Bytes TotalConstants(const PlanFigures& figures) {
  return TotalConstants(figures.constants, figures.optimizer_state);
}

}  // namespace ckplan
