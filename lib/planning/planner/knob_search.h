// Searches for the knob setting that fits a budget best.
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

// A knob setting with its schedule and simulation.
struct Candidate {
  // The `setting` of a plan that no setting leads to.
  static constexpr int64_t kNoSetting = std::numeric_limits<int64_t>::max();

  int64_t setting = 0;
  SolveOutcome outcome;
  Schedule schedule;
  Simulation simulation;

  CurvePoint point() const { return {simulation.peak, simulation.overhead}; }
};

// The step that plans are simulated on, and the problem posed to the algorithm.
struct View {
  // The step must have a forward graph, and the request's constraints must match its nodes.
  View(const TrainingStep& judged, const PlanRequest& request);
  View(const View&) = delete;  // The problem refers to the fold.
  View& operator=(const View&) = delete;

  Strategy UnfoldLayers(Strategy strategy) const;
  // Returns the strategy's schedule in the form of the step, adjusted if it would violate the
  // constraints or would not be a valid plan.
  Schedule Lower(const Strategy& strategy) const;
  // Checks whether the algorithm's own schedule satisfies the constraints.
  bool Satisfies(const Strategy& strategy) const;

  const TrainingStep step;
  const TensorGraph& graph;  // The step's forward graph.
  const std::optional<LayerFold> fold;
  const std::optional<Constraints>
      constraints;  // Unset without constraints, or with given decisions.
  const Problem problem;
  const bool uses_liveness;

 private:
  Schedule LowerAsDecided(const Strategy& strategy) const;

  const std::optional<ScheduleRules> rules_;
};

// Tries settings of a knob, and remembers them.
//
// Memory and overhead are nearly, but not exactly, monotonic in a knob, because liveness frees more
// than the papers' objectives account for. On a small graph, the search tries every setting that
// can matter for any budget, so more memory never costs more time. On a larger graph, it tries a
// grid over the knob's whole range, then bisects next to the best setting a few times. MinPeak and
// BestWithin agree with each other although they bisect different gaps:
//   - BestWithin finds nothing for budgets below MinPeak's peak: it bisects only next to a plan
//     that fits, and MinPeak has tried the whole grid.
//   - BestWithin never returns a plan with a peak below MinPeak's. MinPeak bisects every gap that
//     BestWithin would bisect for any budget. If the knob is a budget on a whole plan, where each
//     plan takes long to find, BestWithin skips plans below MinPeak's peak instead.
// If the knob limits the peak itself, no search is needed: the budget is the setting. This fails
// for plans measured on another graph than the algorithm plans, without liveness, under
// constraints, or with several micro-batches in flight: for these, the search tries evenly spaced
// limits.
class KnobSearch {
 public:
  KnobSearch(const View& view, PreparedSolver* solver, const SolveLimits& limits)
      : view_(view), solver_(*solver), limits_(limits), simulator_(view.step) {}

  // Returns the best plan that the algorithm finds for a setting.
  Result<const Candidate*> At(int64_t setting);
  // Returns the plan with the least overhead whose peak fits `budget`, or null if MinPeak's doesn't
  // fit. After a stop, returns the best plan so far, or kTimeout if none fits.
  Result<const Candidate*> BestWithin(Bytes budget);
  // Returns the plan with the lowest peak found in the whole range. Stops like BestWithin.
  Result<const Candidate*> MinPeak();
  // Returns the plan with the lowest peak found that adds at most `max_added` or, if none does, the
  // plan with the least overhead. Stops like BestWithin.
  Result<const Candidate*> MinPeakAdding(Cost max_added);
  // Returns the plan with the best balance among those for the lowest peak and for the budgets of a
  // curve (CurveBudgets in peak_budget.h), and around the best of these. Stops like BestWithin.
  Result<const Candidate*> Balanced(const Balance& balance);
  // Solves the setting of `found`, a plan within `budget` from BestWithin or MinPeak, as thoroughly
  // as At does. Returns `found` itself if that finds no better plan within the budget, or after a
  // stop.
  Result<const Candidate*> Refine(const Candidate* found, Bytes budget);
  bool was_stopped() const { return was_stopped_; }

 private:
  using Settings = std::set<int64_t>;

  // Graphs of up to this many nodes get all settings tried.
  static constexpr size_t kMaxSmallGraph = 16;

  bool is_small() const { return view_.problem.vertices.size() <= kMaxSmallGraph; }
  // Returns a quick plan for a setting. kTimeout: a stop is requested. The first plan is computed
  // even then, because a late plan is better than none, unless everything must end
  // (lib/base/stop.h).
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
  Result<const Candidate*> ResultOrBestSoFar(Result<const Candidate*> found,
                                             const Candidate* so_far);
  std::vector<int64_t> Grid() const;
  Result<Done> TryGrid();
  bool is_near_peak() const { return solver_.knob().kind == Knob::Kind::kPaperBudget; }
  Result<Settings> TryAround(Bytes budget);
  Result<const Candidate*> BestAround(Bytes budget);
  Result<Done> HalveAround(Bytes budget, Settings* settings);
  Result<Settings> SettingsForAllBudgets(const std::vector<int64_t>& grid);
  const Candidate* BestOf(const Settings& settings, Bytes budget) const;
  const Candidate* TryOneSegment();
  const Candidate* BestBetween(Bytes low, Bytes high) const;
  const Candidate* LowestPeakOf(const Settings& settings) const;
  const Candidate* LowestPeakAdding(Cost max_added) const;
  Result<Done> TryBudgets(const std::vector<Bytes>& budgets);
  std::vector<const Candidate*> CandidatesFrom(Bytes least) const;
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
  std::optional<Candidate> at_setting_;  // Set by At or Refine.
  Bytes min_grid_peak_ = Bytes::Max();   // The minimum over the grid settings tried.
  int64_t middle_ = 0;
  bool was_stopped_ = false;
};

}  // namespace ckplan
