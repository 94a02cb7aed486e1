// The trade-off of memory and time, for searches that know plans for one budget at a time: plans of
// one graph, each with less memory and more time than the next. Plans without copies to the host
// have a curve of their own (curve/trade_off_curve.h).
//
// A PlanSearch finds the least time within a given memory. To find the lowest memory within a given
// time, bisect between the largest memory for which no such plan was found and the lowest peak of
// such a plan.
//
//   added time
//        |  x                        x: plans
//        |- - - - - - - - - - - - -  the most time that may be added
//        |       x                   <- the answer
//        |            x
//        +--------------------- peak
//        ruled out |   | reached
//
// Every plan found and every memory ruled out for one time narrows the range for all other times.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "lib/base/result.h"
#include "lib/planning/algorithms/best/best.h"
#include "lib/planning/plan/balance.h"
#include "lib/planning/plan/curve_point.h"
#include "lib/problem/graph/joint_graph.h"
#include "lib/problem/runs/run_problem.h"
#include "lib/problem/schedule/schedule.h"

namespace ckplan {

// Finds plans with low peaks by bisecting over budgets for SolveBest.
struct LeastPeak {
  std::optional<Runs> runs;  // Empty if no plan below `reached` was found.
  PeakBound bound;           // Holds for all plans of the graph within its scope.
};

// Searches for plans with a peak below `reached`, down to the lower bound of the certificates:
// first at that bound itself, which plans of chains reach, then in the middle of the remaining
// range, at most ten times and until six trials in a row found nothing; at last on the curve.
// Ignores the options' budget. Their work applies to each trial; the programs of all trials
// together get less on graphs of fewer than `full_ops` operations, but at least as much as one
// trial. `refused` is a budget for which a search found no plan. Then the bound isn't tried, and
// after three trials in a row that found nothing, the last ones are for a slightly lower peak.
Result<LeastPeak> FindMinPeak(BestProblem* problem, BestOptions options, int64_t reached,
                              std::optional<int64_t> refused = std::nullopt);

// Searches for plans on the problem's curve that add at most this and need less memory than the
// curve knows: bisects a few times between its plan and its bound. Only for graphs of up to
// kFewProgramOps operations, and of up to kMaxProgramOps where little may be added; for others, the
// curve is nearly as good.
Result<Done> LowerPeakWithin(int64_t most_added, BestProblem* problem);

struct PricedPlan {
  Schedule schedule;
  int64_t peak = 0;
  int64_t overhead = 0;  // The added time over running everything once.
};

// Finds plans within a given memory.
class PlanSearch {
 public:
  struct Found {
    std::optional<Schedule> plan;
    int64_t least_peak = 0;  // A lower bound for the plans that the search considers.
  };

  virtual ~PlanSearch() = default;
  // Returns a lower bound on all plans' peaks.
  virtual int64_t LeastPeak() = 0;
  // If `enough` is set, a plan that adds at most that ends the search. `start` is a plan within the
  // budget, or null.
  virtual Result<Found> Find(int64_t budget, std::optional<int64_t> enough,
                             const Schedule* start) = 0;
  virtual PricedPlan Priced(Schedule schedule) = 0;
};

// After a stop (lib/base/stop.h), keeps the results so far.
class TradeOff {
 public:
  static constexpr int64_t kAnyTime = std::numeric_limits<int64_t>::max() / 2;
  static constexpr int64_t kClose = 256;
  static constexpr int64_t kNear = 64;

  // `first` is a plan, such as keep-all.
  TradeOff(std::unique_ptr<PlanSearch> search, const Schedule& first);

  // Adds a known plan.
  void Add(Schedule schedule);

  // Searches for the lowest peak of plans that add at most `most_added` time, to within 1 /
  // `close_parts` of the first plan's peak.
  Result<Done> SearchWithin(int64_t most_added, int64_t close_parts = kClose);
  // Searches for the lowest peak of all plans.
  Result<Done> SearchMin(int64_t close_parts = kClose);
  // Searches for the fastest plans within `count` evenly spaced amounts of memory, from the
  // smallest that is not ruled out up to the first plan's peak. More memory never costs more time.
  Result<Done> SearchEvenly(int64_t count);

  // Bisects next to the plan with the best balance a few times, as long as that finds other plans.
  Result<Done> SearchForBalance(const Balance& balance);

  // Returns the plan found with the lowest peak that adds at most this or, if there is none, the
  // fastest plan.
  const PricedPlan& LeastWithin(int64_t most_added) const;
  const PricedPlan& Least() const { return plans_.front(); }
  const PricedPlan& Fastest() const { return plans_.back(); }
  // Sorted by rising peak and falling overhead.
  const std::vector<PricedPlan>& plans() const { return plans_; }
  std::vector<CurvePoint> Points() const;
  // Returns the plan of one of these points.
  const PricedPlan& At(const CurvePoint& point) const;

 private:
  // No plan within `budget` was found that adds at most `most_added`.
  struct Refusal {
    int64_t budget = 0;
    int64_t most_added = 0;
  };

  Result<Done> HalveFor(int64_t most_added, int64_t close_parts);
  int64_t RefusedFor(int64_t most_added) const;
  Result<Done> Try(int64_t budget, std::optional<int64_t> enough);
  void Add(PricedPlan added);

  std::unique_ptr<PlanSearch> search_;
  int64_t first_peak_ = 0;
  std::vector<PricedPlan> plans_;
  std::vector<Refusal> refusals_;
};

}  // namespace ckplan
