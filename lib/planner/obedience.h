// What the planner does about constraints (lib/plan/constraints.h), and what messages say of them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.h"
#include "lib/graph/tensor_graph.h"
#include "lib/joint/joint_graph.h"
#include "lib/joint/run_rules.h"
#include "lib/plan/request.h"

namespace ckplan {

// How a guarantee ends of a plan that an algorithm made without heeding the constraints.
inline constexpr std::string_view kChangedToObey = "; then changed to obey the constraints";

// What a proof says after its scope: " under the constraints", or "" if there are none.
std::string_view UnderConstraints(const PlanRequest& request);

// Whether the constraints are such of the graph, and of a request that can have any.
Result<Done> CheckConstraints(const TensorGraph& graph, const PlanRequest& request);

// kUsage with all that is broken, if anything is: decisions are not changed to obey.
Result<Done> CheckDecided(const std::vector<std::string>& broken);

// A joint graph as a request's constraints have it.
class ConstrainedGraph {
 public:
  // Errors are those of ConstraintsOf.
  static Result<ConstrainedGraph> Create(const JointGraph& graph, const PlanRequest& request);

  // In which what must run once may not repeat; `otherwise` if nothing must.
  const JointGraph& graph(const JointGraph& otherwise) const {
    return graph_ ? *graph_ : otherwise;
  }
  // Operations whose values are to be recomputed, and the rules that say so; empty and null if
  // there are none.
  const IdVector<OpId, bool>& is_recomputed() const { return is_recomputed_; }
  const RunRules* rules() const { return rules_ ? &*rules_ : nullptr; }

 private:
  std::optional<JointGraph> graph_;
  IdVector<OpId, bool> is_recomputed_;
  std::optional<RunRules> rules_;
};

}  // namespace ckplan
