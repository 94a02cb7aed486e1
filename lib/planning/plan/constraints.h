// The request's constraints on plans: the fields keep, recompute and never_rerun (request.h), which
// select nodes, tensors, operations and values by name. Kept values and operations that never rerun
// run once, because a second run would create a second version. Backward reads a recomputed value
// only from a run after the forward pass (lib/problem/runs/run_rules.h). check_constraints.h checks
// plans independently.
#pragma once

#include "lib/base/result.h"
#include "lib/base/units.h"
#include "lib/problem/graph/joint_graph.h"
#include "lib/problem/graph/tensor_graph.h"
#include "lib/problem/runs/run_rules.h"
#include "lib/problem/schedule/expand.h"
#include "lib/problem/schedule/schedule.h"
#include "lib/problem/schedule/training_step.h"

namespace ckplan {

struct PlanRequest;

// Indexed by nodes of a forward graph, or by operations of a joint graph.
struct Constraints {
  IdVector<NodeId, bool> is_kept;
  IdVector<NodeId, bool> runs_once;  // Includes the kept ones.
  IdVector<NodeId, bool> is_recomputed;

  bool has_once() const;
  bool has_recomputed() const;
  bool empty() const { return !has_once() && !has_recomputed(); }
};

bool HasConstraints(const PlanRequest& request);

// Resolves the request's names. A tensor stands for the node that produces it. In a joint graph,
// only operations of the forward pass can be kept or recomputed, and aliases are recomputed with
// their base. Fails with kUsage if a pattern matches nothing, if a recomputed value must be kept or
// run once, or if values must be recomputed in a joint graph that does not mark its backward
// operations.
Result<Constraints> ConstraintsOf(const TrainingStep& step, const PlanRequest& request);

// Returns a copy of the graph in which these operations must not repeat.
JointGraph ForbidReruns(const JointGraph& graph, const IdVector<OpId, bool>& runs_once);
// Returns a copy of an expansion in which the forward runs of these nodes must not repeat.
Expansion ForbidReruns(const Expansion& expansion, const IdVector<NodeId, bool>& runs_once);

// Adapts schedules of a forward graph, with frees by liveness, to its constraints.
class ScheduleRules {
 public:
  ScheduleRules(const TensorGraph& graph, const Constraints& constraints);

  bool AreSatisfiedBy(const Schedule& schedule) const;
  // See ConstrainedTo (lib/problem/runs/run_rules.h).
  Schedule ConstrainedTo(const Schedule& schedule) const;

 private:
  Runs RunsOf(const Schedule& schedule) const;

  int32_t node_count_;
  RunRules rules_;  // For the operations of the expansion: forward nodes, the loss, backward nodes.
};

}  // namespace ckplan
