#include "lib/planning/planner/apply_constraints.h"

#include "lib/planning/plan/constraints.h"

namespace ckplan {

std::string_view ConstraintsSuffix(const PlanRequest& request) {
  return HasConstraints(request) ? " under the constraints" : "";
}

Result<Done> CheckConstraints(const TensorGraph& graph, const PlanRequest& request) {
  if (!HasConstraints(request)) return Done{};
  CKPLAN_RETURN_IF_ERROR(ConstraintsOf(graph, request));
  if (request.uses_liveness) return Done{};
  return Error{ErrorCode::kUsage,
               "keep and recompute constraints need liveness; schedules that release tensors "
               "themselves take none",
               {},
               {"leave out", {{"liveness", ""}}}};
}

Result<Done> CheckDecisions(const std::vector<std::string>& broken) {
  if (broken.empty()) return Done{};
  constexpr size_t kMaxShown = 5;
  Error error = MakeError(ErrorCode::kUsage, "the decisions violate the " + broken.front());
  for (size_t i = 1; i < broken.size() && i < kMaxShown; ++i) error.notes.push_back(broken[i]);
  return error;
}

Result<ConstrainedStep> ConstrainedStep::Create(const TrainingStep& step,
                                                const PlanRequest& request) {
  ConstrainedStep constrained(step);
  if (!step.is_joint() || !HasConstraints(request)) return constrained;
  const JointGraph& graph = step.joint();
  CKPLAN_ASSIGN_OR_RETURN(const Constraints constraints, ConstraintsOf(graph, request));
  if (constraints.has_once()) constrained.graph_ = ForbidReruns(graph, constraints.runs_once);
  if (!constraints.has_recomputed()) return constrained;
  constrained.is_recomputed_ = constraints.is_recomputed;
  constrained.rules_ = RulesOf(graph, RunProblem(graph));
  constrained.rules_->is_recomputed.assign(constraints.is_recomputed.begin(),
                                           constraints.is_recomputed.end());
  return constrained;
}

}  // namespace ckplan
