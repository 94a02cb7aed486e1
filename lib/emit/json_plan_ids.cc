#include "lib/emit/json_plan_ids.h"

namespace ckplan {

PlanIds PlanIdsOf(const TensorGraph& graph) {
  PlanIds ids{graph.name(), {}, {}, false};
  for (const Node& node : graph.nodes()) ids.nodes.push_back(node.file_id);
  for (const Tensor& tensor : graph.tensors()) ids.tensors.push_back(tensor.file_id);
  return ids;
}

PlanIds PlanIdsOf(const JointGraph& graph) {
  PlanIds ids{graph.name(), {}, {}, true};
  for (const Operation& op : graph.ops()) ids.nodes.push_back(op.file_id);
  for (const Value& value : graph.values()) ids.tensors.push_back(value.file_id);
  return ids;
}

}  // namespace ckplan
