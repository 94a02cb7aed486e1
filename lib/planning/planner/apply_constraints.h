// Applies constraints (lib/planning/plan/constraints.h) in the planner, and words the messages
// about them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.h"
#include "lib/planning/plan/request.h"
#include "lib/problem/graph/joint_graph.h"
#include "lib/problem/graph/tensor_graph.h"
#include "lib/problem/runs/run_rules.h"
#include "lib/problem/schedule/training_step.h"

namespace ckplan {

// Appended to the guarantee of a plan whose algorithm ignores constraints.
inline constexpr std::string_view kChangedForConstraints =
    "; then changed to satisfy the constraints";

// Appended to the scope of a proof: " under the constraints", or "" without constraints.
std::string_view ConstraintsSuffix(const PlanRequest& request);

// Checks that the constraints match parts of the graph and that the request can have constraints.
Result<Done> CheckConstraints(const TensorGraph& graph, const PlanRequest& request);

// Fails with kUsage if a constraint is broken, and lists all broken ones. Given decisions are never
// changed to satisfy constraints.
Result<Done> CheckDecisions(const std::vector<std::string>& broken);

// A step with a request's constraints applied. Forward graphs are left unchanged.
class ConstrainedStep {
 public:
  // Returns the errors of ConstraintsOf.
  static Result<ConstrainedStep> Create(const TrainingStep& step, const PlanRequest& request);

  // The step, with operations that must run once marked as not repeatable. Refers to this object
  // and to the original step's graphs.
  TrainingStep step() const { return graph_ ? step_.WithJoint(*graph_) : step_; }
  // The operations that must be recomputed, and the rules for them; empty and null without
  // constraints.
  const IdVector<OpId, bool>& is_recomputed() const { return is_recomputed_; }
  const RunRules* rules() const { return rules_ ? &*rules_ : nullptr; }

 private:
  explicit ConstrainedStep(const TrainingStep& step) : step_(step) {}

  TrainingStep step_;
  std::optional<JointGraph> graph_;
  IdVector<OpId, bool> is_recomputed_;
  std::optional<RunRules> rules_;
};

}  // namespace ckplan
