// The data that all searches for plans of one graph share, whatever the budget.
#pragma once

#include <map>
#include <memory>
#include <optional>

#include "lib/planning/algorithms/best/certificates.h"
#include "lib/planning/algorithms/best/min_cut_order.h"
#include "lib/problem/graph/joint_graph.h"
#include "lib/problem/runs/run_problem.h"
#include "lib/problem/runs/run_rules.h"

namespace ckplan {

class TradeOffCurve;

// Each part is computed when it is first asked for. A stop (lib/base/stop.h) keeps the completed
// parts.
class BestProblem {
 public:
  // Keeps a reference to `graph`. `is_recomputed` marks operations whose values must not be kept
  // for the backward pass (lib/problem/runs/run_rules.h); it is empty if there are none.
  explicit BestProblem(const JointGraph& graph, const IdVector<OpId, bool>& is_recomputed = {});
  ~BestProblem();
  BestProblem(const BestProblem&) = delete;
  BestProblem& operator=(const BestProblem&) = delete;

  const JointGraph& graph() const { return graph_; }
  const RunProblem& flat() const { return flat_; }
  // Returns the rules that plans must obey; null if no values must be recomputed.
  const RunRules* rules() const { return rules_ ? &*rules_ : nullptr; }
  // Returns the cost of the second runs that every plan must have. In unforced_graph() these
  // operations cost nothing, so a bound there plus this cost is a bound here.
  int64_t forced_cost() const { return forced_cost_; }
  const JointGraph& unforced_graph() const { return unforced_ ? *unforced_ : graph_; }
  const RunProblem& unforced() const { return unforced_flat_ ? *unforced_flat_ : flat_; }
  const Certificates& certificates();
  // Returns the order of least memory that this many searches find (MinCutOrderOptions::starts).
  const OrderWithPeak& MinCutOrder(int starts);
  // Returns the curve of the graph's own order, with all plans and bounds found so far.
  TradeOffCurve* curve();

 private:
  const JointGraph& graph_;
  const RunProblem flat_;
  std::optional<RunRules> rules_;
  int64_t forced_cost_ = 0;
  std::optional<JointGraph> unforced_;
  std::optional<RunProblem> unforced_flat_;
  std::optional<Certificates> certificates_;
  std::map<int, OrderWithPeak> min_cut_orders_;  // The key is `starts`.
  std::unique_ptr<TradeOffCurve> curve_;
};

}  // namespace ckplan
