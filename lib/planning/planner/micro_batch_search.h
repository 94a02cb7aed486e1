// The search of `best` in a pipeline, where the bytes that a plan saves count once for each
// micro-batch in flight (lib/problem/parallel/division.h).
//
// `best` itself limits only the peak of one micro-batch. So it solves for several such limits, and
// this search takes the plans whose memory with all micro-batches is within the budget:
//
//   with all
//   micro-batches            x            x: a plan for a limit
//        budget - - - - - -x- - - - -
//                      x x
//                  x           limit on one micro-batch
//
// Plans of the other algorithms that answer at once are candidates as well. These algorithms
// measure all micro-batches.
//
// The search tries a dozen limits between the least peak and that of keeping everything. Then it
// halves the gap above the limit of the best plan that fits a few times. If an added time is asked
// for, it halves the gap below the limit of the least plan that adds no more; for a balance, the
// gaps beside the limit of the plan that it prefers. In a plan within the
// budget, one micro-batch alone is within it as well, so what `best` proves for the budget as a
// limit holds.
#pragma once

#include <optional>
#include <vector>

#include "lib/base/result.h"
#include "lib/base/units.h"
#include "lib/planning/plan/balance.h"
#include "lib/planning/plan/plan.h"
#include "lib/planning/plan/request.h"
#include "lib/planning/plan/solver.h"
#include "lib/planning/planner/best_search.h"
#include "lib/problem/graph/tensor_graph.h"
#include "lib/problem/schedule/simulate.h"

namespace ckplan {

// Has the interface of BestSearch.
class MicroBatchSearch {
 public:
  // Keeps references to the graph and to the limits.
  MicroBatchSearch(const TensorGraph& graph, const PlanRequest& request, const SolveLimits& limits);

  // Returns the plan of least time that is found within the budget, with all micro-batches
  // together, or a solution without a schedule if none is found.
  Result<BestSolution> Solve(Bytes budget);
  // Returns the plan of the least memory that is found.
  Result<BestSolution> FindMin();
  Result<BestSolution> SolveForMinPeak() { return FindMin(); }
  // Returns the plan of the least memory that is found among those that add no more.
  Result<BestSolution> SolveWithinAddedTime(Cost most_added);
  // Returns the plan that the balance prefers to all that are found.
  Result<BestSolution> SolveForBalance(const Balance& balance);
  // Returns the best plan for the request's budget that was found before a stop ended the search.
  std::optional<BestSolution> found() const;
  // Returns the points that are shown of those that SolveWithinAddedTime has found between the
  // least memory and the least time, `chosen` among them. Returns nothing for a request with a
  // budget.
  std::vector<CurvePoint> CurveWith(const BestSolution& chosen) const;
  // Returns all of these points.
  Result<std::vector<CurvePoint>> TraceCurve(Cost most_added);

 private:
  struct Found {
    Bytes limit;
    BestSolution solution;
    CurvePoint point;  // Measured with all micro-batches.
    Bytes own_peak;    // Measured with one.
  };

  Found Measured(Bytes limit, BestSolution solution);
  Result<Done> Try(Bytes limit, BestSearch* search);
  void Add(Found found);
  void AddWarmStarts(std::optional<Bytes> budget);  // Without a budget: the plans of least peak.
  Result<Done> TryGrid();
  Result<Done> GoBelowLeast();
  const Found& LeastFound() const;
  std::vector<CurvePoint> Points() const;
  const Found& LeastWithin(Cost most_added) const;
  const Found& BalancedFound() const;
  Result<Done> HalveAbove(Bytes budget);
  Result<Done> HalveBelow(Cost most_added);
  Result<Done> HalveBesideBalanced();
  const Found* BestWithin(Bytes budget) const;
  bool IsOf(BoundScope scope, const Found& found) const;
  PeakBound MinPeakOf(const Found& found) const;
  BestSolution Unproven(const Found& found) const;

  const TensorGraph& graph_;
  const TensorGraph one_;  // The graph of one micro-batch alone.
  const PlanRequest request_;
  const SolveLimits& limits_;
  const PlanRequest one_request_;
  const PlanRequest quick_request_;
  BestSearch search_;
  BestSearch quick_;
  Simulator simulator_;
  std::vector<Found> found_;        // Ascending limits.
  Cost most_added_;                 // The argument of SolveWithinAddedTime.
  std::optional<Balance> balance_;  // The argument of SolveForBalance.
  PeakBound least_peak_;            // A bound for one micro-batch, and so for all.
};

}  // namespace ckplan
