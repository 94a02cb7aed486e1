// What a request forbids plans of a graph, by the names of its nodes, tensors, operations and
// values: the fields keep, recompute and never_rerun (request.h).
//
// What is kept, and what never runs again, runs once: a second run would make a second version.
// What is recomputed is not read in the backward pass as the forward pass made it
// (lib/joint/run_rules.h). Plans are judged by check_constraints.h, which shares nothing with this.
#pragma once

#include "lib/base/result.h"
#include "lib/base/units.h"
#include "lib/graph/tensor_graph.h"
#include "lib/joint/expand.h"
#include "lib/joint/joint_graph.h"
#include "lib/joint/run_rules.h"
#include "lib/plan/request.h"
#include "lib/schedule/schedule.h"

namespace ckplan {

// Nodes of a forward graph, or operations of a joint graph.
struct Constraints {
  IdVector<NodeId, bool> is_kept;
  IdVector<NodeId, bool> runs_once;  // Those that are kept among them.
  IdVector<NodeId, bool> is_recomputed;

  bool has_once() const;
  bool has_recomputed() const;
  bool empty() const { return !has_once() && !has_recomputed(); }
};

bool HasConstraints(const PlanRequest& request);

// A tensor stands for the node that makes it. In a joint graph only operations of the forward pass
// are kept or recomputed, and with what is recomputed so are its aliases. kUsage: a pattern fits
// nothing; something is to be recomputed that is to be kept or may not run twice; a joint graph
// does not say which of its operations are of the backward pass, and something is to be recomputed.
Result<Constraints> ConstraintsOf(const TensorGraph& graph, const PlanRequest& request);
Result<Constraints> ConstraintsOf(const JointGraph& graph, const PlanRequest& request);

// The graph in which what runs once may not repeat.
JointGraph WithRunsOnce(const JointGraph& graph, const IdVector<OpId, bool>& runs_once);
// The same of the expansion of a forward graph: of runs of its nodes forward.
Expansion WithRunsOnce(const Expansion& expansion, const IdVector<NodeId, bool>& runs_once);

// Schedules of a forward graph that release tensors after their last read, by its constraints.
class ScheduleRules {
 public:
  ScheduleRules(const TensorGraph& graph, const Constraints& constraints);

  bool AreObeyedBy(const Schedule& schedule) const;
  // See MadeToObey (lib/joint/run_rules.h).
  Schedule MadeToObey(const Schedule& schedule) const;

 private:
  Runs RunsOf(const Schedule& schedule) const;

  int32_t node_count_;
  RunRules rules_;  // Operations: the nodes forward, the loss, the nodes backward.
};

}  // namespace ckplan
