// What the planner does about constraints (lib/plan/constraints.h), and what messages say of them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.h"
#include "lib/graph/joint_graph.h"
#include "lib/graph/tensor_graph.h"
#include "lib/plan/request.h"
#include "lib/runs/run_rules.h"
#include "lib/schedule/training_step.h"

namespace ckplan {

// How a guarantee ends of a plan that an algorithm made without heeding the constraints.
inline constexpr std::string_view kChangedToObey = "; then changed to obey the constraints";

// What a proof says after its scope: " under the constraints", or "" if there are none.
std::string_view UnderConstraints(const PlanRequest& request);

// Whether the constraints are such of the graph, and of a request that can have any.
Result<Done> CheckConstraints(const TensorGraph& graph, const PlanRequest& request);

// kUsage with all that is broken, if anything is: decisions are not changed to obey.
Result<Done> CheckDecided(const std::vector<std::string>& broken);

// A step as a request's constraints have it. A forward graph is left as it is.
class ConstrainedStep {
 public:
  // Errors are those of ConstraintsOf.
  static Result<ConstrainedStep> Create(const TrainingStep& step, const PlanRequest& request);

  // In which what must run once may not repeat. Refers to this object and to the step's graphs.
  TrainingStep step() const { return graph_ ? step_.WithJoint(*graph_) : step_; }
  // Operations whose values are to be recomputed, and the rules that say so; empty and null if
  // there are none.
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
