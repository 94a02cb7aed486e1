#include "lib/files/emit/json_plan_words.h"

namespace ckplan {

PlanIds PlanIdsOf(const TrainingStep& step) {
  PlanIds ids{step.name(), {}, {}, step.is_joint()};
  for (const NodeId id : step.node_ids()) ids.nodes.push_back(step.FileIdOf(id));
  for (const TensorId id : step.tensor_ids()) ids.tensors.push_back(step.FileIdOf(id));
  return ids;
}

}  // namespace ckplan
