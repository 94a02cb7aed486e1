#include "lib/planning/algorithms/chen/chen_drop_cheap.h"

#include <utility>

#include "lib/planning/algorithms/chen/kept_plan.h"
#include "lib/planning/algorithms/chen/op_price.h"
#include "lib/planning/plan/fixed_plan.h"

namespace ckplan {
namespace {

// Divides the total, which is below kMaxTotalCost; multiplying a node's cost by n might overflow.
bool CostsLessThanAverage(const VertexGraph& vertices, NodeId v) {
  const auto n = static_cast<int64_t>(vertices.size());
  const int64_t total = vertices.total_time().count();
  const int64_t cost = vertices.time(v).count();
  return cost < total / n || (cost == total / n && total % n != 0);
}

IdVector<NodeId, bool> ChooseKept(const Problem& problem) {
  IdVector<NodeId, bool> is_kept(problem.vertices.size(), true);
  bool has_known_name = false;
  for (const NodeId v : problem.vertices.ids()) {
    const OpPrice price = PriceOf(problem.graph.node(v).op);
    is_kept[v] = price == OpPrice::kCostly || price == OpPrice::kUnknown;
    has_known_name |= price != OpPrice::kUnknown;
  }
  if (has_known_name) return is_kept;
  for (const NodeId v : problem.vertices.ids()) {
    is_kept[v] = !CostsLessThanAverage(problem.vertices, v);
  }
  return is_kept;
}

}  // namespace

Result<std::unique_ptr<PreparedSolver>> PrepareChenDropCheap(const Problem& problem,
                                                             const SolveLimits&) {
  SolveOutcome outcome =
      PlanOfKept(problem, ChooseKept(problem),
                 "heuristic: results of cheap operations are dropped, all others kept");
  return std::unique_ptr<PreparedSolver>(new FixedPlanSolver(std::move(outcome)));
}

}  // namespace ckplan
