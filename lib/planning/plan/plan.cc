#include "lib/planning/plan/plan.h"

#include "lib/base/text.h"

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

NodeLabel LabelOf(const TrainingStep& step, NodeId id) {
  NodeLabel label{WellFormedUtf8(step.RawNameOf(id)), WellFormedUtf8(step.OpOf(id)), {}};
  for (const TensorId output : step.OutputsOf(id)) {
    label.outputs.push_back(
        {step.FileIdOf(output), WellFormedUtf8(step.RawNameOf(output)), step.BytesOf(output)});
  }
  return label;
}

IdVector<NodeId, NodeLabel> LabelsOf(const TrainingStep& step) {
  IdVector<NodeId, NodeLabel> labels;
  for (const NodeId id : step.node_ids()) labels.push_back(LabelOf(step, id));
  return labels;
}

Bytes TotalConstants(const ConstantMemory& constants, Bytes optimizer_state) {
  return constants.parameters + constants.parameter_gradients + constants.inputs +
         constants.unsharded + optimizer_state;
}

Bytes TotalConstants(const PlanFigures& figures) {
  return TotalConstants(figures.constants, figures.optimizer_state);
}

}  // namespace ckplan
