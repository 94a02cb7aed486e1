// The search of `best` where a plan's saved bytes count once for each micro-batch under way
// (lib/parallel/pipeline.h).
//
// `best` knows the peak of one micro-batch alone. It solves for limits on that, and of what it
// finds the plans count whose memory with all micro-batches is within the budget:
//
//   with all
//   micro-batches            x            x: a plan for a limit
//        budget - - - - - -x- - - - -
//                      x x
//                  x           limit on one micro-batch
//
// Plans of the other algorithms that answer at once, which weigh all micro-batches, are candidates
// as well.
//
// First a dozen limits between the least and what keeping everything needs, then the gap above the
// best that fits, halved a few times; where an added time is asked for, the gap below the least
// that adds no more. No plan within the budget has one micro-batch above it, so
// what is proven for the budget as a limit holds.
#pragma once

#include <optional>
#include <vector>

#include "lib/base/result.h"
#include "lib/base/units.h"
#include "lib/graph/tensor_graph.h"
#include "lib/plan/plan.h"
#include "lib/plan/request.h"
#include "lib/plan/solver.h"
#include "lib/planner/best_search.h"
#include "lib/schedule/simulate.h"

namespace ckplan {

// It is called as BestSearch is.
class MicroBatchSearch {
 public:
  // Keeps references to the graph and to the limits.
  MicroBatchSearch(const TensorGraph& graph, const PlanRequest& request, const SolveLimits& limits);

  // The plan of least time that is found within the budget, on all micro-batches together; one
  // without a schedule if none is found.
  Result<BestSolution> Solve(Bytes budget);
  // The plan of the least memory that is found.
  Result<BestSolution> FindLeast();
  Result<BestSolution> SolveForLeastPeak() { return FindLeast(); }
  // The plan of the least memory that is found which adds no more.
  Result<BestSolution> SolveWithinAddedTime(Cost most_added);
  // The best of what was found before a stop ended the search, for the request's budget.
  std::optional<BestSolution> found() const;
  // What is shown of what SolveWithinAddedTime has found between the least memory and the least
  // time, `chosen` among it; nothing for a request with a budget.
  std::vector<CurvePoint> CurveWith(const BestSolution& chosen) const;
  // All of it.
  Result<std::vector<CurvePoint>> TraceCurve(Cost most_added);

 private:
  struct Found {
    Bytes limit;
    BestSolution solution;
    CurvePoint point;  // With all micro-batches.
    Bytes own_peak;    // Of one.
  };

  Found Measured(Bytes limit, BestSolution solution);
  Result<Done> Try(Bytes limit, BestSearch* search);
  void Add(Found found);
  void AddOthers(std::optional<Bytes> budget);  // Without one, those of least peak.
  Result<Done> TryGrid();
  Result<Done> GoBelowLeast();
  const Found& LeastFound() const;
  std::vector<CurvePoint> Points() const;
  const Found& LeastWithin(Cost most_added) const;
  Result<Done> HalveAbove(Bytes budget);
  Result<Done> HalveBelow(Cost most_added);
  const Found* BestWithin(Bytes budget) const;
  bool IsOf(BoundScope scope, const Found& found) const;
  PeakBound LeastPeakOf(const Found& found) const;
  BestSolution Unproven(const Found& found) const;

  const TensorGraph& graph_;
  const TensorGraph one_;  // The same of one micro-batch.
  const PlanRequest request_;
  const SolveLimits& limits_;
  const PlanRequest one_request_;
  const PlanRequest quick_request_;
  BestSearch search_;
  BestSearch quick_;
  Simulator simulator_;
  std::vector<Found> found_;  // Ascending limits.
  Cost most_added_;           // What SolveWithinAddedTime was asked for.
  PeakBound least_peak_;      // Of one micro-batch, so of all as well.
};

}  // namespace ckplan
