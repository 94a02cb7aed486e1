// The search of `best` on a forward graph: in the graph's own order, in orders of other algorithms'
// plans, and, if the request allows it, in any order of forward and backward operations.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "lib/algorithms/best/best.h"
#include "lib/algorithms/best/best_problem.h"
#include "lib/algorithms/best/trade_off.h"
#include "lib/base/result.h"
#include "lib/base/units.h"
#include "lib/graph/tensor_graph.h"
#include "lib/plan/certificate.h"
#include "lib/plan/constraints.h"
#include "lib/plan/plan.h"
#include "lib/plan/request.h"
#include "lib/plan/solver.h"
#include "lib/schedule/expand.h"
#include "lib/schedule/schedule.h"

namespace ckplan {

// What was found within a budget, as BestOutcome has it.
struct BestSolution {
  std::optional<Schedule> schedule;
  int64_t overhead = 0;
  int64_t lower_bound = 0;  // Of all plans in the order of the schedule, or in any.
  bool is_optimal = false;
  bool is_infeasible = false;
  OverheadProof proof = OverheadProof::kRunOnce;
  BoundScope scope = BoundScope::kAnyOrder;  // Of `lower_bound`.
  PeakBound least_peak = {};

  bool IsBetterThan(const BestSolution& other) const {
    return schedule && (!other.schedule || overhead < other.overhead);
  }
};

// From the least to the most. A search with one goes on from what it finds with those before.
inline constexpr std::array kEfforts = {SearchEffort::kQuick, SearchEffort::kNormal,
                                        SearchEffort::kThorough};

// What a search with this effort may do, beside what less effort has done.
BestWork WorkOf(SearchEffort effort);

// For so many budgets at equal distances a curve has points, beside those that are shown.
inline constexpr int64_t kCurveBudgets = 12;

// Looks for the plan of the least peak that adds no more, then for the points of the curve that are
// shown (lib/plan/added_time.h).
Result<Done> SearchShownPoints(Cost most_added, Cost step, TradeOff* trade_off);

// Solves for one budget after the other. Heeds a stop (lib/base/stop.h).
class BestSearch {
 public:
  // Keeps references to all of these. The request's constraints are such of the graph. With
  // `enough`, solving for a budget ends with a plan that adds no more time, or with the proof that
  // there is none.
  BestSearch(const TensorGraph& graph, const PlanRequest& request, const SolveLimits& limits,
             std::optional<Cost> enough = std::nullopt);

  // The best plan that is found of those that the request allows, no worse than `known`, which is
  // one within the budget. More effort goes on from what less effort finds.
  Result<BestSolution> Solve(Bytes budget, const std::optional<Schedule>& known = std::nullopt);

  // The plan of the least peak that is found, of the least time for it.
  Result<BestSolution> SolveForLeastPeak();

  // A plan of the least peak that is found, and what is proven of the least peak: in the graph's
  // own order, or in any if the request allows any.
  Result<BestSolution> FindLeast();

  // The plan of the least peak that is found which adds no more, and of little time for it. On the
  // way plans for the other times that are shown (lib/plan/added_time.h) are found, and the least.
  Result<BestSolution> SolveWithinAddedTime(Cost most_added);

  // What was found on the way that is shown, and what was returned; else nothing.
  std::vector<CurvePoint> CurveWith(const BestSolution& chosen) const;

  // As SolveWithinAddedTime, and then searches a range of budgets: returns the Pareto front of all.
  Result<std::vector<CurvePoint>> TraceCurve(Cost most_added);

  // Whether its first runs are in the graph's own order.
  bool IsInOwnOrder(const Schedule& schedule) const;

  // The best of what was found before a stop ended the search.
  const std::optional<BestSolution>& found() const { return found_; }

 private:
  using Order = std::vector<NodeId>;

  // What is searched for one order of the forward pass, with plans in this order.
  struct OrderedProblem {
    Order order;
    std::vector<Schedule> starts;
  };

  // How far the search for one budget has come.
  struct Progress {
    BestSolution best;
    std::optional<BestOutcome> own;        // Of the graph's own order.
    std::optional<BestOutcome> any_order;  // Of any.
  };

  static Order OwnForwardOrder(const TensorGraph& graph);

  Result<Done> SolveAt(SearchEffort effort, Bytes budget, Progress* progress);
  bool IsFinal(const Progress& progress) const;
  Result<BestSolution> SolveMirrored(SearchEffort effort, Bytes budget, Progress* progress);
  Result<BestSolution> SolveOwnOrder(Bytes budget, const BestWork& work,
                                     const std::vector<Schedule>& starts,
                                     std::optional<BestOutcome>* before);
  Result<BestSolution> SolveInOrder(Bytes budget, const OrderedProblem& problem,
                                    const BestWork& work);
  Result<BestOutcome> SolveExpansion(const Expansion& expansion, BestProblem* problem, Bytes budget,
                                     const BestWork& work, const std::vector<Schedule>& starts,
                                     const BestOutcome* before) const;
  Result<Done> SolveInAnyOrder(SearchEffort effort, Bytes budget, Progress* progress);
  Result<BestSolution> FindLeastInAnyOrder(const BestSolution& known);
  std::vector<OrderedProblem> OthersWithin(Bytes budget, const BestSolution& own,
                                           const std::optional<Schedule>& known,
                                           SearchEffort effort) const;
  BestSolution LeastOfOthers() const;

  BestSolution LeastWithin(Cost most_added) const;
  BestSolution KeepingAll() const;  // But for what is to be recomputed.
  Expansion WithConstraints(Expansion expansion) const;
  IdVector<OpId, bool> RecomputedOf(const Expansion& expansion) const;
  BestSolution SolutionOf(const Schedule& schedule) const;
  void KeepInCaseOfStop(const BestSolution& solution);
  bool IsEnough(const BestSolution& solution) const;
  Bytes PeakOf(const BestSolution& solution) const;
  CurvePoint PointOf(const BestSolution& solution) const;
  Cost StepCost() const { return graph_.forward_cost() + graph_.backward_cost(); }

  const TensorGraph& graph_;
  const PlanRequest& request_;
  const SolveLimits& limits_;
  const std::optional<Cost> enough_;
  const std::optional<Constraints> constraints_;  // None if there are none.
  const Order own_order_;
  const Expansion expansion_;           // In the graph's own order.
  BestProblem own_problem_;             // Of that.
  std::optional<Expansion> any_order_;  // If the request allows any.
  std::optional<BestProblem> any_order_problem_;
  std::optional<TradeOff> trade_off_;  // In the graph's own order.
  std::optional<BestSolution> found_;
};

}  // namespace ckplan
