// The search of `best` in a pipeline, where every byte that a plan saves counts once per
// micro-batch in flight (lib/problem/parallel/division.h).
//
// `best` itself limits only the peak of one micro-batch. So this search solves for several such
// limits, and keeps the plans whose memory for all micro-batches fits the budget:
//
//   with all
//   micro-batches            x            x: a plan for a limit
//        budget - - - - - -x- - - - -
//                      x x
//                  x           limit on one micro-batch
//
// Plans of the other fast algorithms are candidates as well. These algorithms measure all
// micro-batches.
//
// The search tries a dozen limits between the lowest peak and the keep-all peak. Then it bisects a
// few times: above the limit of the best plan that fits; for a limit on added time, below that of
// the smallest plan that adds no more; for a balance, on both sides of the best plan. If all
// micro-batches fit the budget, one alone does, so what `best` proves with the budget as its limit
// still holds.
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

  // Returns the fastest plan found whose memory for all micro-batches fits the budget, or a
  // solution without a schedule.
  Result<BestSolution> Solve(Bytes budget);
  // Returns the plan with the lowest memory found.
  Result<BestSolution> SolveForMinPeak();
  // Returns the plan with the lowest memory found that adds at most `most_added`.
  Result<BestSolution> SolveWithinAddedTime(Cost most_added);
  // Returns the plan with the best balance found.
  Result<BestSolution> SolveForBalance(const Balance& balance);
  // The best plan for the request's budget found before a stop ended the search.
  std::optional<BestSolution> found() const;
  // Returns the points to show after SolveWithinAddedTime, including `chosen`. Empty if the request
  // has a budget.
  std::vector<CurvePoint> CurveToShow(const BestSolution& chosen) const;
  // Returns all points found between the lowest memory and the least time.
  Result<std::vector<CurvePoint>> TraceCurve(Cost most_added);

 private:
  struct Found {
    Bytes limit;
    BestSolution solution;
    CurvePoint point;  // Measured with all micro-batches.
    Bytes own_peak;    // Measured with one.
  };

  Found Measure(Bytes limit, BestSolution solution);
  Result<Done> Try(Bytes limit, BestSearch* search);
  void Add(Found found);
  void AddWarmStarts(
      std::optional<Bytes> budget);  // Without a budget, adds the plans with the lowest peaks.
  Result<Done> TryGrid();
  Result<Done> LowerMinPeak();
  const Found& LowestPeakFound() const;
  std::vector<CurvePoint> Points() const;
  const Found& LeastWithin(Cost most_added) const;
  const Found& BestBalancedFound() const;
  Result<Done> HalveAbove(Bytes budget);
  Result<Done> HalveBelow(Cost most_added);
  Result<Done> HalveBesideBalanced();
  const Found* BestWithin(Bytes budget) const;
  bool ScopeCovers(BoundScope scope, const Found& found) const;
  PeakBound MinPeakOf(const Found& found) const;
  BestSolution SolutionWithoutProof(const Found& found) const;

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
  Cost most_added_;                 // From SolveWithinAddedTime.
  std::optional<Balance> balance_;  // From SolveForBalance.
  PeakBound least_peak_;            // Proven for one micro-batch, so valid for all.
};

}  // namespace ckplan
