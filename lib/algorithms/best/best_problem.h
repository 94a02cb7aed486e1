// What all searches for plans of one graph share, whatever the budget.
#pragma once

#include <map>
#include <optional>

#include "lib/algorithms/best/certificates.h"
#include "lib/algorithms/best/min_cut_order.h"
#include "lib/joint/joint_graph.h"
#include "lib/joint/run_problem.h"
#include "lib/joint/run_rules.h"

namespace ckplan {

// Each part is found when it is first asked for. A stop (lib/base/stop.h) leaves those that are
// there.
class BestProblem {
 public:
  // Keeps a reference to `graph`. `is_recomputed`: operations whose values are not to be kept for
  // the backward pass (lib/joint/run_rules.h); empty if there are none.
  explicit BestProblem(const JointGraph& graph, const IdVector<OpId, bool>& is_recomputed = {});

  const JointGraph& graph() const { return graph_; }
  const RunProblem& flat() const { return flat_; }
  // What plans must obey; null if nothing is to be recomputed.
  const RunRules* rules() const { return rules_ ? &*rules_ : nullptr; }
  // What the second runs cost that every plan must have, and the graph in which those operations
  // cost nothing: what a plan there adds and that cost together are what it adds here at least.
  int64_t forced_cost() const { return forced_cost_; }
  const JointGraph& unforced_graph() const { return unforced_ ? *unforced_ : graph_; }
  const RunProblem& unforced() const { return unforced_flat_ ? *unforced_flat_ : flat_; }
  const Certificates& certificates();
  // The order of least memory of so many searches (MinCutOrderOptions::starts).
  const OrderWithPeak& MinCutOrder(int starts);

 private:
  const JointGraph& graph_;
  const RunProblem flat_;
  std::optional<RunRules> rules_;
  int64_t forced_cost_ = 0;
  std::optional<JointGraph> unforced_;
  std::optional<RunProblem> unforced_flat_;
  std::optional<Certificates> certificates_;
  std::map<int, OrderWithPeak> min_cut_orders_;  // By `starts`.
};

}  // namespace ckplan
