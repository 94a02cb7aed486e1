// The search of `best` on a forward graph: in the graph's own order, in orders of other algorithms'
// plans, and, if the request allows it, in any order of forward and backward operations.
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

// The plan found within a budget, and what is proven about it: see BestOutcome.
struct BestSolution {
  std::optional<Schedule> schedule;
  int64_t overhead = 0;
  int64_t lower_bound = 0;  // On the overhead of all plans within `scope`.
  bool is_optimal = false;
  bool is_infeasible = false;
  bool is_settled = false;  // Further search would gain less than the effort tolerates.
  OverheadProof proof = OverheadProof::kRunOnce;
  BoundScope scope = BoundScope::kAnyOrder;  // The scope of `lower_bound`.
  PeakBound least_peak = {};

  bool IsBetterThan(const BestSolution& other) const {
    return schedule && (!other.schedule || overhead < other.overhead);
  }
};

// The efforts from the least to the most. A search with one effort continues from what it finds
// with those before.
inline constexpr std::array kEfforts = {SearchEffort::kQuick, SearchEffort::kNormal,
                                        SearchEffort::kThorough};

// Returns the work that a search with this effort may do, in addition to that of less effort.
BestWork WorkOf(SearchEffort effort);

// Traces the curve, then looks for the plan of the least peak that adds at most `most_added`, and
// for the points of the curve that are shown (lib/planning/plan/added_time.h).
Result<Done> ReadShownPoints(Cost most_added, Cost step, const CurveWork& work,
                             BestProblem* problem);

// Looks for plans between those on a curve of few points, from the one of the largest peak on.
void ReadBetweenPoints(const CurveWork& work, TradeOffCurve* curve);

// Adds to each point what the curve proves about plans that add no more.
void AddLeastPeaks(const TradeOffCurve& curve, std::vector<CurvePoint>* points);

// Looks for better plans beside the one that the balance prefers, as long as that finds any.
void ReadForBalance(const Balance& balance, const CurveWork& work, TradeOffCurve* curve);

// Solves for one budget after the other. Heeds a stop (lib/base/stop.h).
class BestSearch {
 public:
  // Keeps references to its arguments. The request's constraints must name parts of the graph. With
  // `enough`, solving for a budget ends with a plan that adds no more time, or with the proof that
  // there is none.
  BestSearch(const TensorGraph& graph, const PlanRequest& request, const SolveLimits& limits,
             std::optional<Cost> enough = std::nullopt);

  // Returns the best plan found that the request allows. It is no worse than `known`, which must be
  // a plan within the budget. More effort continues from what less effort finds.
  Result<BestSolution> Solve(Bytes budget, const std::optional<Schedule>& known = std::nullopt);

  // Reads the plan and what is proven about it off the curve of the graph's own order, and no more.
  Result<BestSolution> SolveByCurve(Bytes budget);

  // Looks for plans of little memory on that curve, and returns the lowest peak of those that add
  // no more than `enough`, which must be given, and that `fits` accepts.
  std::optional<Bytes> PeakThatFits(
      const std::function<bool(const Schedule& schedule, Bytes peak)>& fits);

  // Returns the plan of the least peak found, with the least time for that peak.
  Result<BestSolution> SolveForLeastPeak();

  // Returns a plan of the least peak found, and what is proven about the least peak in the graph's
  // own order or, if the request allows any order, in any.
  Result<BestSolution> FindLeast();

  // Returns the plan of the least peak found that adds at most `most_added`, with little time for
  // that peak. On the way, finds the plan of the least peak, and plans for the other added times
  // that are shown (lib/planning/plan/added_time.h).
  Result<BestSolution> SolveWithinAddedTime(Cost most_added);

  // Returns the points found on the way that are shown, and that of `chosen`, the plan returned,
  // with what is proven about each. Returns nothing after other searches.
  std::vector<CurvePoint> CurveWith(const BestSolution& chosen);

  // Returns the plan that the balance prefers to all that are found by the searches of TraceCurve
  // and SolveForLeastPeak, and beside the best of these.
  Result<BestSolution> SolveForBalance(const Balance& balance);

  // Does the search of SolveWithinAddedTime. Returns the Pareto front of all plans found.
  Result<std::vector<CurvePoint>> TraceCurve(Cost most_added);

  // Returns whether the first runs of the schedule are in the graph's own order.
  bool IsInOwnOrder(const Schedule& schedule) const;

  // Returns the best plan that was found before a stop ended the search.
  const std::optional<BestSolution>& found() const { return found_; }

 private:
  using Order = std::vector<NodeId>;

  // An order of the forward pass to search for, with known plans in this order.
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
  Result<BestSolution> FindLeastInAnyOrder(const BestSolution& known);
  std::vector<OrderedProblem> OtherOrdersWithin(Bytes budget, const BestSolution& own,
                                                const std::optional<Schedule>& known,
                                                SearchEffort effort) const;
  BestSolution LeastWarmStart() const;

  TradeOffCurve& curve() { return *own_problem_.curve(); }
  BestSolution LeastWithin(Cost most_added);
  BestSolution BalancedFound();
  bool IsBetterBalanced(const BestSolution& a, const BestSolution& b) const;
  BestSolution KeepingAll() const;  // Keeps all but what the constraints recompute.
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
  BestProblem own_problem_;             // The problem of `expansion_`.
  std::optional<Expansion> any_order_;  // If the request allows any.
  std::optional<BestProblem> any_order_problem_;
  bool has_curve_ = false;          // The curve was asked for.
  std::optional<Balance> balance_;  // The argument of SolveForBalance.
  std::optional<BestSolution> found_;
};

}  // namespace ckplan
