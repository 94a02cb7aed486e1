// How the planner applies constraints (lib/planning/plan/constraints.h), and what messages say
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

// Ends the guarantee of a plan whose algorithm ignores constraints.
inline constexpr std::string_view kChangedForConstraints =
    "; then changed to satisfy the constraints";

// Returns what a proof says after its scope: " under the constraints", or "" if there are none.
std::string_view UnderConstraints(const PlanRequest& request);

// Checks that the constraints name parts of the graph, and that the request may have constraints.
Result<Done> CheckConstraints(const TensorGraph& graph, const PlanRequest& request);

// Fails with kUsage if any constraint is broken, and lists all of them. Given decisions are never
// changed to obey constraints.
Result<Done> CheckDecided(const std::vector<std::string>& broken);

// A step to which a request's constraints are applied. A forward graph is left as it is.
class ConstrainedStep {
 public:
  // Errors are those of ConstraintsOf.
  static Result<ConstrainedStep> Create(const TrainingStep& step, const PlanRequest& request);

  // Returns the step, in which operations that must run once may not repeat. It refers to this
  // object and to the step's graphs.
  TrainingStep step() const { return graph_ ? step_.WithJoint(*graph_) : step_; }
  // Return the operations whose values are to be recomputed, and the rules that say so; empty and
  // null if there are none.
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
