#include "lib/planner/joint_problem.h"

#include "lib/plan/assemble_joint.h"

namespace ckplan {

Bytes ConstantsInBudget(const JointGraph& graph, const PlanRequest& request) {
  if (!request.total_budget.is_given()) return Bytes(0);
  return TotalConstants(JointConstants(graph),
                        OptimizerState(request.optimizer, ParameterGradientBytes(graph)));
}

}  // namespace ckplan
