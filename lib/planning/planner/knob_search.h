// Searches for the setting of an algorithm's knob that fits a budget best.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "lib/base/result.h"
#include "lib/planning/plan/balance.h"
#include "lib/planning/plan/constraints.h"
#include "lib/planning/plan/curve_point.h"
#include "lib/planning/plan/request.h"
#include "lib/planning/plan/solver.h"
#include "lib/problem/graph/layer_fold.h"
#include "lib/problem/schedule/simulate.h"
#include "lib/problem/schedule/training_step.h"

namespace ckplan {

// One setting of the knob, with its schedule and the simulator's measurements.
struct Candidate {
  // The value of `setting` for a plan that belongs to no setting.
  static constexpr int64_t kNoSetting = std::numeric_limits<int64_t>::max();

  int64_t setting = 0;
  SolveOutcome outcome;
  Schedule schedule;
  Simulation simulation;

  CurvePoint point() const { return {simulation.peak, simulation.overhead}; }
};

// The step that plans are simulated on, and the problem that the algorithm solves for it.
struct View {
  // The step must have a forward graph, and the request's constraints must name its nodes.
  View(const TrainingStep& judged, const PlanRequest& request);
  View(const View&) = delete;  // The problem refers to the fold.
  View& operator=(const View&) = delete;

  Strategy OnNodes(Strategy strategy) const;
  // Returns the schedule of the strategy in the form of the step. It is changed if it would not
  // obey the constraints or would not be a plan of the step.
  Schedule Lower(const Strategy& strategy) const;
  // Whether the algorithm's own schedule obeys the constraints.
  bool Satisfies(const Strategy& strategy) const;

  const TrainingStep step;
  const TensorGraph& graph;  // The step's forward graph.
  const std::optional<LayerFold> fold;
  const std::optional<Constraints> constraints;  // None if there are none, or decisions are given.
  const Problem problem;
  const bool uses_liveness;

 private:
  Schedule LowerAsDecided(const Strategy& strategy) const;

  const std::optional<ScheduleRules> rules_;
};

// The settings of a knob that have been tried, and the search for more.
//
// Memory and overhead are nearly, but not exactly, monotonic in a knob, because liveness frees more
// than the papers' objectives account for. On a small graph, every setting that may matter is tried
// for every budget, so that more memory never costs more time. On a larger graph, a grid over the
// knob's whole range is tried first, and then the gaps beside the best setting are halved a few
// times. MinPeak and BestWithin agree with each other, although they halve different gaps:
//   - BestWithin finds nothing for budgets below MinPeak's peak: it halves gaps only beside a plan
//     that fits, and MinPeak has tried the whole grid.
//   - BestWithin returns no plan whose peak is below MinPeak's. MinPeak halves every gap that
//     BestWithin would halve for any budget. If the knob is a budget on a whole plan, for which a
//     plan takes long to find, BestWithin leaves out the plans below MinPeak's peak instead.
// If the knob is a limit on the peak itself, there is nothing to search: the budget is the setting.
// There are exceptions: plans that are measured on another graph than the algorithm decides on,
// without liveness, under constraints, or with the memory of other micro-batches. For these, limits
// at equal distances are tried.
class KnobSearch {
 public:
  KnobSearch(const View& view, PreparedSolver* solver, const SolveLimits& limits)
      : view_(view), solver_(*solver), limits_(limits), simulator_(view.step) {}

  // Returns the plan of one setting, as good as the algorithm can make it.
  Result<const Candidate*> At(int64_t setting);
  // Returns the plan of least overhead whose peak is at most `budget`, or null if MinPeak's is
  // above it. A stop ends the search with the best plan so far, or with kTimeout if none fits.
  Result<const Candidate*> BestWithin(Bytes budget);
  // Returns the plan of the least peak found anywhere in the range. A stop ends the search
  // likewise.
  Result<const Candidate*> MinPeak();
  // Returns the plan of the least peak found that adds at most `most` or, if there is none, that of
  // the least overhead. A stop ends the search likewise.
  Result<const Candidate*> MinPeakAdding(Cost most);
  // Returns the plan that the balance prefers to all that are found for the least peak, for the
  // budgets of a curve (CurveBudgets in peak_budget.h) and beside the best of these. A stop ends
  // the search likewise.
  Result<const Candidate*> Balanced(const Balance& balance);
  // Solves the setting of `found`, a plan within `budget` that BestWithin or MinPeak has returned,
  // again as thoroughly as At does. Returns `found` itself if that gives no better plan within the
  // budget, or if a stop comes first.
  Result<const Candidate*> Refine(const Candidate* found, Bytes budget);
  bool was_stopped() const { return was_stopped_; }

 private:
  using Settings = std::set<int64_t>;

  // Up to this many nodes all settings are tried.
  static constexpr size_t kMaxSmallGraph = 16;

  bool is_small() const { return view_.problem.vertices.size() <= kMaxSmallGraph; }
  // Returns a quick plan for a setting. kTimeout: a stop is requested. The first plan is made even
  // then, unless everything is to end (lib/base/stop.h): a plan that is a little late is better
  // than none.
  Result<const Candidate*> Try(int64_t setting);
  Result<const Candidate*> TryNew(int64_t setting);
  Result<SolveOutcome> Probe(int64_t setting);
  Candidate Evaluate(int64_t setting, SolveOutcome outcome);
  Result<Done> TryAll();
  Result<Done> TryWholeFront();
  Result<const Candidate*> SearchWithin(Bytes budget);
  bool is_peak_limit() const { return solver_.knob().kind == Knob::Kind::kPeakLimit; }
  bool limits_own_peak() const {
    return !view_.fold && view_.uses_liveness && !view_.constraints &&
           view_.graph.micro_batches() == 1;
  }
  Result<const Candidate*> WithinLimit(Bytes budget);
  Result<Settings> TryLimits();
  Result<const Candidate*> SearchMinPeak();
  Result<const Candidate*> UnlessCutShort(Result<const Candidate*> found, const Candidate* so_far);
  std::vector<int64_t> Grid() const;
  Result<Done> TryGrid();
  bool is_near_peak() const { return solver_.knob().kind == Knob::Kind::kPaperBudget; }
  Result<Settings> TryAround(Bytes budget);
  Result<const Candidate*> BestAround(Bytes budget);
  Result<Done> HalveAround(Bytes budget, Settings* settings);
  Result<Settings> AroundEveryBudget(const std::vector<int64_t>& grid);
  const Candidate* BestOf(const Settings& settings, Bytes budget) const;
  const Candidate* TryOneSegment();
  const Candidate* BestBetween(Bytes low, Bytes high) const;
  const Candidate* LeastOf(const Settings& settings) const;
  const Candidate* LeastAdding(Cost most) const;
  Result<Done> TryBudgets(const std::vector<Bytes>& budgets);
  std::vector<const Candidate*> From(Bytes least) const;
  std::vector<CurvePoint> FrontFrom(Bytes least) const;
  Result<const Candidate*> TryOnGrid(int64_t setting);
  bool HalveGap(int64_t low, int64_t high);
  Result<Done> TryMiddle(int64_t low, int64_t high, Settings* settings);
  bool HalveTowardsLessOverhead(const Candidate& best, const Settings& settings);

  const View& view_;
  PreparedSolver& solver_;
  const SolveLimits& limits_;
  Simulator simulator_;
  std::map<int64_t, Candidate> tried_;
  // The result of TryOneSegment. It is not in `tried_`, since it belongs to no setting.
  std::optional<Candidate> one_segment_;
  std::optional<Candidate> at_setting_;  // The result of At or Refine.
  Bytes min_grid_peak_ = Bytes::Max();   // The least of the settings tried on the grid.
  int64_t middle_ = 0;
  bool was_stopped_ = false;
};

}  // namespace ckplan
