// What all searches for plans of one graph share, whatever the budget.
#pragma once

#include <map>
#include <optional>

#include "lib/algorithms/best/certificates.h"
#include "lib/algorithms/best/min_cut_order.h"
#include "lib/joint/joint_graph.h"
#include "lib/joint/run_problem.h"

namespace ckplan {

// Each part is found when it is first asked for. A stop (lib/base/stop.h) leaves those that are
// there.
class BestProblem {
 public:
  explicit BestProblem(const JointGraph& graph);  // Keeps a reference to `graph`.

  const JointGraph& graph() const { return graph_; }
  const RunProblem& flat() const { return flat_; }
  const Certificates& certificates();
  // The order of least memory of so many searches (MinCutOrderOptions::starts).
  const OrderWithPeak& MinCutOrder(int starts);

 private:
  const JointGraph& graph_;
  const RunProblem flat_;
  std::optional<Certificates> certificates_;
  std::map<int, OrderWithPeak> min_cut_orders_;  // By `starts`.
};

}  // namespace ckplan
