// The search of `best` on a forward graph: in the graph's own order, in the orders of other
// algorithms' plans and, if the request allows it, in any order of forward and backward operations.
// In a pipeline, peaks and budgets include what the other micro-batches in flight hold.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "lib/base/result.h"
#include "lib/base/units.h"
#include "lib/planning/algorithms/best/best.h"
#include "lib/planning/algorithms/best/curve/trade_off_curve.h"
#include "lib/planning/algorithms/best/trade_off.h"
#include "lib/planning/plan/balance.h"
#include "lib/planning/plan/certificate.h"
#include "lib/planning/plan/constraints.h"
#include "lib/planning/plan/plan.h"
#include "lib/planning/plan/request.h"
#include "lib/planning/plan/solver.h"
#include "lib/problem/graph/tensor_graph.h"
#include "lib/problem/schedule/expand.h"
#include "lib/problem/schedule/schedule.h"

namespace ckplan {

// The plan found for a budget, and what is proven about it; see BestOutcome.
struct BestSolution {
  std::optional<Schedule> schedule;
  int64_t overhead = 0;
  int64_t lower_bound = 0;  // On the overhead of all plans in `scope`.
  bool is_optimal = false;
  bool is_infeasible = false;
  bool is_settled = false;  // More search can gain too little to matter.
  OverheadProof proof = OverheadProof::kRunOnce;
  BoundScope scope = BoundScope::kAnyOrder;  // The scope of `lower_bound`.
  PeakBound least_peak = {};

  bool IsBetterThan(const BestSolution& other) const {
    return schedule && (!other.schedule || overhead < other.overhead);
  }
};

// In increasing order. A search continues from the results of the efforts before.
inline constexpr std::array kEfforts = {SearchEffort::kQuick, SearchEffort::kNormal,
                                        SearchEffort::kThorough};

// Returns the micro-batches in flight besides the one that the expansion runs.
OtherMicroBatches OthersOf(const TensorGraph& graph, const Expansion& expansion);

// Returns the work allowed at this effort, on top of that of lower efforts.
BestWork WorkOf(SearchEffort effort);

// Traces the curve, then searches for the plan with the lowest peak that adds at most `most_added`
// and for the other points that the user sees (lib/planning/plan/added_time.h).
Result<Done> TraceShownPoints(Cost most_added, Cost step, const CurveWork& work,
                              BestProblem* problem);

// Searches for plans between the points of a sparse curve, from the largest peak down.
void RefineBetweenPoints(const CurveWork& work, TradeOffCurve* curve);

// Adds to each point the lower bound that the curve proves on the peak of plans that add no more.
void AddMinPeaks(const TradeOffCurve& curve, std::vector<CurvePoint>* points);

// Searches around the plan with the best balance until that finds no better one.
void RefineForBalance(const Balance& balance, const CurveWork& work, TradeOffCurve* curve);

// Solves for a series of budgets. Can be stopped (lib/base/stop.h).
class BestSearch {
 public:
  // Keeps references to its arguments. The request's constraints must match parts of the graph.
  // With `enough`, a search for a budget ends at the first plan that adds at most that, or once
  // there is proof that none exists.
  BestSearch(const TensorGraph& graph, const PlanRequest& request, const SolveLimits& limits,
             std::optional<Cost> enough = std::nullopt);

  // Returns the best plan found that the request allows. It is at least as good as `known`, which
  // must fit the budget. Higher effort continues from the results of lower effort.
  Result<BestSolution> Solve(Bytes budget, const std::optional<Schedule>& known = std::nullopt);

  // Like Solve, but if quick effort finds no plan, asks `find_least` for the plan with the lowest
  // peak found: if its peak is far above the budget (IsFarBelow), normal effort isn't tried.
  Result<BestSolution> SolveUnlessFarBelow(Bytes budget,
                                           const std::function<Result<BestSolution>()>& find_least);
  // Tells whether the budget is so far below the lowest peak found that a search at normal effort
  // has never found a plan within it.
  bool IsFarBelow(Bytes budget, const BestSolution& least) const;

  // Reads the plan and its proofs from the curve of the graph's own order, without other searches.
  Result<BestSolution> SolveByCurve(Bytes budget);

  // Searches that curve for plans with peaks up to `most` that add at most `enough`, which must be
  // set. Returns the peak of the first one that `fits` accepts.
  std::optional<Bytes> PeakThatFits(
      Bytes most, const std::function<bool(const Schedule& schedule, Bytes peak)>& fits);

  // Returns a plan with the lowest peak found, and a bound on the peak in the graph's own order or,
  // if the request allows it, in any order. No point of CurveToShow has a lower peak, unless that
  // comes from the last search for the chosen plan.
  Result<BestSolution> FindMin();
  // Returns a plan with at most that peak, and the least time for it.
  Result<BestSolution> SolveForMinPeak();

  // Returns the plan with the lowest peak found that adds at most `most_added`, and little time for
  // that peak. Also finds the plan with the lowest peak of all, and plans for the other added times
  // that the user sees (lib/planning/plan/added_time.h).
  Result<BestSolution> SolveWithinAddedTime(Cost most_added);

  // Returns the points to show after SolveWithinAddedTime, including that of `chosen`, the plan
  // returned, with what is proven about each. Empty after other searches.
  std::vector<CurvePoint> CurveToShow(const BestSolution& chosen);

  // Returns the plan with the best balance among all that TraceCurve and SolveForMinPeak find, and
  // around the best of these.
  Result<BestSolution> SolveForBalance(const Balance& balance);

  // Searches like SolveWithinAddedTime. Returns the Pareto front of all plans found.
  Result<std::vector<CurvePoint>> TraceCurve(Cost most_added);

  // Tells whether the first runs of the schedule are in the graph's own order.
  bool IsInOwnOrder(const Schedule& schedule) const;

  // The best plan found before a stop ended the search.
  const std::optional<BestSolution>& found() const { return found_; }

 private:
  using Order = std::vector<NodeId>;

  // A forward order to search in, with known plans in this order.
  struct OrderedProblem {
    Order order;
    std::vector<Schedule> starts;
  };

  // The state of the search for one budget.
  struct Progress {
    BestSolution best;
    std::optional<BestOutcome> own;        // In the graph's own order.
    std::optional<BestOutcome> any_order;  // In any order.
  };

  static Order OwnForwardOrder(const TensorGraph& graph);

  Result<BestSolution> SolveFrom(Progress progress, Bytes budget,
                                 const std::function<Result<BestSolution>()>& find_least);
  Result<Done> SolveAt(SearchEffort effort, Bytes budget, Progress* progress);
  bool IsFinal(const Progress& progress) const;
  Result<BestSolution> SolveMirrored(SearchEffort effort, Bytes budget, Progress* progress);
  SearchEffort EffortForOtherOrders(const BestSolution& found, SearchEffort effort) const;
  Result<BestSolution> SolveOwnOrder(Bytes budget, const BestWork& work,
                                     const std::vector<Schedule>& starts,
                                     std::optional<BestOutcome>* before);
  Result<BestSolution> SolveInOrder(Bytes budget, const OrderedProblem& problem,
                                    const BestWork& work);
  Result<BestOutcome> SolveExpansion(const Expansion& expansion, BestProblem* problem, Bytes budget,
                                     const BestWork& work, const std::vector<Schedule>& starts,
                                     const BestOutcome* before) const;
  Result<Done> SolveInAnyOrder(SearchEffort effort, Bytes budget, Progress* progress);
  Result<Done> TraceOnce(Cost most_added);
  Result<LeastPeak> FindMinInOwnOrder(Bytes reached);
  Result<BestSolution> FindMinInAnyOrder(const BestSolution& known);
  std::vector<OrderedProblem> FindOtherOrders(Bytes budget, const BestSolution& own,
                                              const std::optional<Schedule>& known,
                                              SearchEffort effort) const;
  BestSolution MinPeakWarmStart() const;

  TradeOffCurve& curve() { return *own_problem_.curve(); }
  BestSolution LeastWithin(Cost most_added);
  BestSolution BestBalancedFound();
  bool IsBetterBalanced(const BestSolution& a, const BestSolution& b) const;
  BestSolution KeepAllSolution() const;  // Keeps everything except what the constraints recompute.
  Expansion ApplyConstraints(Expansion expansion) const;
  IdVector<OpId, bool> FindRecomputed(const Expansion& expansion) const;
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
  const std::optional<Constraints> constraints_;  // Unset without constraints.
  const Order own_order_;
  const Expansion expansion_;           // In the graph's own order.
  BestProblem own_problem_;             // The problem of `expansion_`.
  std::optional<Expansion> any_order_;  // Set if the request allows any order.
  std::optional<BestProblem> any_order_problem_;
  bool has_curve_ = false;          // A curve was requested.
  std::optional<Balance> balance_;  // The argument of SolveForBalance.
  std::optional<BestSolution> found_;
  std::optional<BestSolution> least_;  // The result of FindMin.
};

}  // namespace ckplan
