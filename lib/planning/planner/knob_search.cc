#include "lib/planning/planner/knob_search.h"

#include <algorithm>
#include <tuple>

#include "lib/base/stop.h"
#include "lib/planning/planner/apply_constraints.h"
#include "lib/planning/planner/peak_budget.h"
#include "lib/problem/schedule/canonical_strategy.h"
#include "lib/problem/schedule/expand.h"
#include "lib/problem/schedule/lower.h"

namespace ckplan {
namespace {

constexpr int kRefinements = 4;
constexpr int64_t kAddedPrecision = 1000;  // Skips budgets that differ by less than 1/1000.
constexpr int64_t kMaxMisfits = 3;         // Four grid steps apart.
constexpr int64_t kFarOff = 5;             // A fifth above the budget.

Problem ProblemOf(const TensorGraph& graph, const PlanRequest& request,
                  const IdVector<NodeId, bool>* runs_once) {
  Problem problem(graph, request.objective);
  if (request.decisions) problem.decisions = &*request.decisions;
  problem.order = request.order;
  problem.runs_once = runs_once;
  return problem;
}

// Prefers less overhead, then less memory, then the lower setting.
bool IsBetterForTime(const Candidate& a, const Candidate& b) {
  return std::tuple(a.simulation.overhead, a.simulation.peak, a.setting) <
         std::tuple(b.simulation.overhead, b.simulation.peak, b.setting);
}
bool IsBetterForMemory(const Candidate& a, const Candidate& b) {
  return std::tuple(a.simulation.peak, a.simulation.overhead, a.setting) <
         std::tuple(b.simulation.peak, b.simulation.overhead, b.setting);
}

}  // namespace

View::View(const TrainingStep& judged, const PlanRequest& request)
    : step(judged),
      graph(judged.forward()),
      fold(request.granularity == Granularity::kLayer ? std::optional(FoldLayers(graph))
                                                      : std::nullopt),
      constraints(HasConstraints(request) && !request.decisions
                      ? std::optional(ConstraintsOf(graph, request).value())
                      : std::nullopt),
      problem(ProblemOf(fold ? fold->graph : graph, request,
                        constraints && !fold ? &constraints->runs_once : nullptr)),
      uses_liveness(request.uses_liveness),
      rules_(constraints ? std::optional(ScheduleRules(graph, *constraints)) : std::nullopt) {}

Strategy View::UnfoldLayers(Strategy strategy) const {
  return fold ? Unfold(*fold, strategy) : strategy;
}

bool View::Satisfies(const Strategy& strategy) const {
  return !rules_ || rules_->AreSatisfiedBy(LowerAsDecided(strategy));
}

Schedule View::Lower(const Strategy& strategy) const {
  Schedule schedule = LowerAsDecided(strategy);
  if (rules_) schedule = rules_->ConstrainedTo(schedule);
  return InFormOf(step, schedule);
}

Schedule View::LowerAsDecided(const Strategy& strategy) const {
  return uses_liveness ? LowerStrategy(graph, strategy) : LowerWithoutLiveness(graph, strategy);
}

Result<const Candidate*> KnobSearch::At(int64_t setting) {
  CKPLAN_ASSIGN_OR_RETURN(SolveOutcome outcome, solver_.Solve(setting, limits_));
  return &at_setting_.emplace(Evaluate(setting, std::move(outcome)));
}

Result<const Candidate*> KnobSearch::Refine(const Candidate* found, Bytes budget) {
  if (!found->outcome.is_rough) return found;
  Result<const Candidate*> refined = CatchStop([&] {
    const StopScope scope(limits_.stop);
    PollStop();
    return At(found->setting);
  });
  if (!refined.ok()) return ResultOrBestSoFar(std::move(refined), found);
  const Simulation& simulation = (*refined)->simulation;
  // No plan needs less memory than MinPeak's, so there is nothing to refine.
  const Bytes least = std::min(found->simulation.peak, min_grid_peak_);
  const bool fits = simulation.peak >= least && simulation.peak <= budget;
  return fits && !IsBetterForTime(*found, **refined) ? *refined : found;
}

Result<const Candidate*> KnobSearch::Try(int64_t setting) {
  const auto known = tried_.find(setting);
  if (known != tried_.end()) return &known->second;
  if (tried_.empty()) return TryNew(setting);
  return CatchStop([&] {
    const StopScope scope(limits_.stop);
    PollStop();
    return TryNew(setting);
  });
}

Result<const Candidate*> KnobSearch::TryNew(int64_t setting) {
  CKPLAN_ASSIGN_OR_RETURN(SolveOutcome outcome, Probe(setting));
  return &tried_.emplace(setting, Evaluate(setting, std::move(outcome))).first->second;
}

Result<SolveOutcome> KnobSearch::Probe(int64_t setting) {
  SolveLimits limits = limits_;
  limits.is_probe = true;
  return solver_.Solve(setting, limits);
}

Candidate KnobSearch::Evaluate(int64_t setting, SolveOutcome outcome) {
  outcome.strategy = view_.UnfoldLayers(std::move(outcome.strategy));
  Schedule schedule = view_.Lower(outcome.strategy);
  if (!view_.Satisfies(outcome.strategy)) {
    outcome.is_optimal = false;
    outcome.guarantee += kChangedForConstraints;
  }
  const Simulation simulation = simulator_.Run(schedule).value();
  return {setting, std::move(outcome), std::move(schedule), simulation};
}

Result<const Candidate*> KnobSearch::BestWithin(Bytes budget) {
  Result<const Candidate*> found = SearchWithin(budget);
  return ResultOrBestSoFar(std::move(found), BestBetween(Bytes(0), budget));
}

Result<const Candidate*> KnobSearch::MinPeak() {
  Result<const Candidate*> found = SearchMinPeak();
  Settings settings;
  for (const auto& [setting, candidate] : tried_) settings.insert(setting);
  return ResultOrBestSoFar(std::move(found), LowestPeakOf(settings));
}

Result<const Candidate*> KnobSearch::MinPeakAdding(Cost max_added) {
  CKPLAN_ASSIGN_OR_RETURN(const Candidate* least, MinPeak());
  // More memory nearly always costs less time, so bisect over budgets.
  Bytes low = least->simulation.peak;
  Bytes high = std::max(low, KeepAllPeak(view_.step));
  while (least->simulation.overhead > max_added &&
         high - low > Bytes(low.count() / kAddedPrecision) && !was_stopped_) {
    const Bytes middle = low + Bytes((high - low).count() / 2);
    if (middle == low) break;
    CKPLAN_ASSIGN_OR_RETURN(const Candidate* best, BestWithin(middle));
    const bool is_within = best != nullptr && best->simulation.overhead <= max_added;
    (is_within ? high : low) = middle;
  }
  CKPLAN_RETURN_IF_ERROR(BestWithin(high));
  return LowestPeakAdding(max_added);
}

// Returns the best plan tried, preferring those that add at most `max_added`.
const Candidate* KnobSearch::LowestPeakAdding(Cost max_added) const {
  const auto rank = [max_added](const Candidate& c) {
    const Cost above = std::max(Cost(0), c.simulation.overhead - max_added);
    return std::tuple(above, c.simulation.peak, c.simulation.overhead);
  };
  const Candidate* best = one_segment_ ? &*one_segment_ : nullptr;
  for (const auto& [setting, candidate] : tried_) {
    if (best == nullptr || rank(candidate) < rank(*best)) best = &candidate;
  }
  return best;
}

Result<const Candidate*> KnobSearch::Balanced(const Balance& balance) {
  CKPLAN_ASSIGN_OR_RETURN(const Candidate* first, MinPeak());
  const Bytes least = first->simulation.peak;
  CKPLAN_RETURN_IF_ERROR(TryBudgets(CurveBudgets(least, KeepAllPeak(view_.step))));
  for (int i = 0; i < kRefinements && !was_stopped_; ++i) {
    const std::vector<CurvePoint> front = FrontFrom(least);
    CKPLAN_RETURN_IF_ERROR(TryBudgets(balance.BudgetsBesideBest(front)));
    if (FrontFrom(least) == front) break;
  }
  const CurvePoint best = balance.BestOf(FrontFrom(least));
  const std::vector<const Candidate*> all = CandidatesFrom(least);
  const Candidate* const found =
      *std::find_if(all.begin(), all.end(),
                    [&](const Candidate* candidate) { return candidate->point() == best; });
  return Refine(found, best.peak);
}

Result<Done> KnobSearch::TryBudgets(const std::vector<Bytes>& budgets) {
  for (const Bytes budget : budgets) {
    if (!was_stopped_) CKPLAN_RETURN_IF_ERROR(BestWithin(budget));
  }
  return Done{};
}

// Returns all candidates except those with a lower peak than MinPeak's plan, because BestWithin
// finds no plan for such budgets.
std::vector<const Candidate*> KnobSearch::CandidatesFrom(Bytes least) const {
  std::vector<const Candidate*> all;
  for (const auto& [setting, candidate] : tried_) all.push_back(&candidate);
  if (one_segment_) all.push_back(&*one_segment_);
  std::erase_if(all, [least](const Candidate* c) { return c->simulation.peak < least; });
  return all;
}

std::vector<CurvePoint> KnobSearch::FrontFrom(Bytes least) const {
  std::vector<CurvePoint> points;
  for (const Candidate* const candidate : CandidatesFrom(least)) {
    points.push_back(candidate->point());
  }
  return FrontOf(std::move(points));
}

// Returns `found` or, after a stop, the best plan so far.
Result<const Candidate*> KnobSearch::ResultOrBestSoFar(Result<const Candidate*> found,
                                                       const Candidate* so_far) {
  const bool is_stopped = !found.ok() && found.error().code == ErrorCode::kTimeout;
  if (!is_stopped || so_far == nullptr) return found;
  was_stopped_ = true;
  return so_far;
}

Result<const Candidate*> KnobSearch::SearchWithin(Bytes budget) {
  if (is_peak_limit()) return WithinLimit(budget);
  const Candidate* one_segment = TryOneSegment();
  if (one_segment != nullptr && one_segment->simulation.peak <= budget) return one_segment;
  if (is_small()) {
    CKPLAN_RETURN_IF_ERROR(TryAll());
    return BestBetween(Bytes(0), budget);
  }
  CKPLAN_ASSIGN_OR_RETURN(const Candidate* best, BestAround(budget));
  const bool is_settled =
      !is_near_peak() || (best != nullptr && best->simulation.peak >= min_grid_peak_);
  if (best != nullptr && is_settled) return best;
  // A plan that MinPeak finds between grid points may fit although none on the grid does. If only a
  // part of the grid was tried, a plan in the rest may fit, or the best plan may have a peak below
  // MinPeak's, which is not allowed.
  CKPLAN_ASSIGN_OR_RETURN(const Candidate* least, SearchMinPeak());
  return BestBetween(least->simulation.peak, budget);
}

// SearchWithin for a knob that limits the peak.
Result<const Candidate*> KnobSearch::WithinLimit(Bytes budget) {
  const Knob knob = solver_.knob();
  if (!limits_own_peak()) {
    CKPLAN_ASSIGN_OR_RETURN(const Settings settings, TryLimits());
    return BestOf(settings, budget);
  }
  if (budget.count() < knob.min) return nullptr;
  const Result<const Candidate*> found = Try(std::min(budget.count(), knob.max));
  if (!found.ok() && found.error().code == ErrorCode::kInfeasible) return nullptr;
  return found.ok() && (*found)->simulation.peak > budget ? nullptr : found;
}

// Tries the lowest feasible limit, or many limits if they predict the measured peak badly.
Result<KnobSearch::Settings> KnobSearch::TryLimits() {
  constexpr int64_t kLimits = 16;
  const Knob knob = solver_.knob();
  CKPLAN_ASSIGN_OR_RETURN(const Candidate* lowest, Try(knob.min));
  const int64_t least = std::max(knob.min, lowest->outcome.paper.peak.count());
  Settings settings = {least};
  if (!limits_own_peak()) {
    settings.insert(knob.max);
    for (int64_t i = 1; i < kLimits; ++i) {
      settings.insert(least + (knob.max - least) / kLimits * i);
    }
  }
  for (const int64_t setting : settings) CKPLAN_RETURN_IF_ERROR(Try(setting));
  return settings;
}

// Tries the part of the grid near a budget, then bisects next to the best plan.
Result<const Candidate*> KnobSearch::BestAround(Bytes budget) {
  CKPLAN_ASSIGN_OR_RETURN(Settings settings, TryAround(budget));
  CKPLAN_RETURN_IF_ERROR(HalveAround(budget, &settings));
  return BestOf(settings, budget);
}

// Bisects next to the best plan a few times, and adds the settings tried.
Result<Done> KnobSearch::HalveAround(Bytes budget, Settings* settings) {
  for (int i = 0; i < kRefinements; ++i) {
    const Candidate* best = BestOf(*settings, budget);
    if (best == nullptr || best->simulation.overhead == Cost(0)) break;
    if (!HalveTowardsLessOverhead(*best, *settings)) break;
    CKPLAN_RETURN_IF_ERROR(Try(middle_));
    settings->insert(middle_);
  }
  return Done{};
}

// Returns all settings that BestAround would try for any budget. BestAround only compares peaks
// with the budget, so using these settings' peaks as budgets is enough.
Result<KnobSearch::Settings> KnobSearch::SettingsForAllBudgets(const std::vector<int64_t>& grid) {
  Settings all;
  std::set<Bytes> seen;
  std::vector<Bytes> budgets;
  const auto add = [&](const Settings& settings) {
    for (const int64_t setting : settings) {
      const Bytes peak = tried_.at(setting).simulation.peak;
      if (seen.insert(peak).second) budgets.push_back(peak);
    }
    all.insert(settings.begin(), settings.end());
  };
  add(Settings(grid.begin(), grid.end()));
  while (!budgets.empty()) {
    const Bytes budget = budgets.back();
    budgets.pop_back();
    Settings around(grid.begin(), grid.end());
    CKPLAN_RETURN_IF_ERROR(HalveAround(budget, &around));
    add(around);
  }
  return all;
}

// Returns the best setting whose peak fits the budget, or null.
const Candidate* KnobSearch::BestOf(const Settings& settings, Bytes budget) const {
  const Candidate* found = nullptr;
  for (const int64_t setting : settings) {
    const Candidate& candidate = tried_.at(setting);
    if (candidate.simulation.peak > budget) continue;
    if (found == nullptr || IsBetterForTime(candidate, *found)) found = &candidate;
  }
  return found;
}

// Returns the best of all settings tried so far with a peak in the range, or null.
const Candidate* KnobSearch::BestBetween(Bytes low, Bytes high) const {
  const Candidate* found = nullptr;
  for (const auto& [setting, candidate] : tried_) {
    if (candidate.simulation.peak < low || candidate.simulation.peak > high) continue;
    if (found == nullptr || IsBetterForTime(candidate, *found)) found = &candidate;
  }
  return found;
}

const Candidate* KnobSearch::LowestPeakOf(const Settings& settings) const {
  const Candidate* least = nullptr;
  for (const int64_t setting : settings) {
    const Candidate& candidate = tried_.at(setting);
    if (least == nullptr || IsBetterForMemory(candidate, *least)) least = &candidate;
  }
  return least;
}

// Considers the same settings regardless of what was tried before.
Result<const Candidate*> KnobSearch::SearchMinPeak() {
  Settings settings;
  if (is_peak_limit()) {
    CKPLAN_ASSIGN_OR_RETURN(settings, TryLimits());
  } else if (is_small()) {
    CKPLAN_RETURN_IF_ERROR(TryAll());
    for (const auto& [setting, candidate] : tried_) settings.insert(setting);
  } else {
    CKPLAN_RETURN_IF_ERROR(TryGrid());
    const std::vector<int64_t> grid = Grid();
    settings.insert(grid.begin(), grid.end());
    for (int i = 0; i < kRefinements; ++i) {
      const auto at = settings.find(LowestPeakOf(settings)->setting);
      const auto next = std::next(at) == settings.end() ? *at : *std::next(at);
      const auto previous = at == settings.begin() ? *at : *std::prev(at);
      CKPLAN_RETURN_IF_ERROR(TryMiddle(*at, next, &settings));
      CKPLAN_RETURN_IF_ERROR(TryMiddle(previous, *at, &settings));
    }
    if (!is_near_peak()) {
      CKPLAN_ASSIGN_OR_RETURN(Settings others, SettingsForAllBudgets(grid));
      settings.merge(others);
    }
  }
  const Candidate* one_segment = TryOneSegment();
  const Candidate* least = LowestPeakOf(settings);
  const bool is_less = one_segment != nullptr && IsBetterForMemory(*one_segment, *least);
  return is_less ? one_segment : least;
}

Result<Done> KnobSearch::TryMiddle(int64_t low, int64_t high, Settings* settings) {
  if (!HalveGap(low, high)) return Done{};
  CKPLAN_RETURN_IF_ERROR(Try(middle_));
  settings->insert(middle_);
  return Done{};
}

// Tries every setting of the grid, and bisects every gap a few times.
Result<Done> KnobSearch::TryAll() {
  if (solver_.knob().kind == Knob::Kind::kPaperBudget) return TryWholeFront();
  const std::vector<int64_t> grid = Grid();
  Settings settings(grid.begin(), grid.end());
  for (int i = 0; i < kRefinements; ++i) {
    const std::vector<int64_t> coarse(settings.begin(), settings.end());
    for (size_t k = 1; k < coarse.size(); ++k) {
      if (HalveGap(coarse[k - 1], coarse[k])) settings.insert(middle_);
    }
  }
  for (const int64_t setting : settings) CKPLAN_RETURN_IF_ERROR(Try(setting));
  return Done{};
}

// A plan for a paper's budget is also the plan for every smaller budget down to its own peak. So
// its peak covers that whole range, and the next plan lies just below it.
Result<Done> KnobSearch::TryWholeFront() {
  const Knob knob = solver_.knob();
  for (int64_t setting = knob.max; setting >= knob.min; --setting) {
    CKPLAN_ASSIGN_OR_RETURN(SolveOutcome outcome, Probe(setting));
    setting = std::min(setting, outcome.paper.peak.count());
    outcome.paper.budget = Bytes(setting);
    tried_.insert_or_assign(setting, Evaluate(setting, std::move(outcome)));
  }
  return Done{};
}

// Returns settings in geometric progression over the whole range.
std::vector<int64_t> KnobSearch::Grid() const {
  const Knob knob = solver_.knob();
  std::vector<int64_t> grid = {knob.min};
  while (grid.back() < knob.max) {
    grid.push_back(
        std::min(knob.max, grid.back() + std::max<int64_t>(1, grid.back() / knob.grid_steps)));
  }
  return grid;
}

Result<Done> KnobSearch::TryGrid() {
  for (const int64_t setting : Grid()) CKPLAN_RETURN_IF_ERROR(TryOnGrid(setting));
  return Done{};
}

Result<const Candidate*> KnobSearch::TryOnGrid(int64_t setting) {
  CKPLAN_ASSIGN_OR_RETURN(const Candidate* candidate, Try(setting));
  min_grid_peak_ = std::min(min_grid_peak_, candidate->simulation.peak);
  return candidate;
}

// Tries the part of the grid near a budget. If the knob is a budget on a whole plan, the simulated
// peak is mostly below the setting. So the search starts at the budget and goes up until several
// plans in a row don't fit, or one is far off; it goes down only if none fits. Other knobs say
// nothing about the peak, and either end of their range can need the most memory, so the search
// tries the whole grid.
Result<KnobSearch::Settings> KnobSearch::TryAround(Bytes budget) {
  const auto fits = [&](const Candidate& c) { return c.simulation.peak <= budget; };
  const std::vector<int64_t> grid = Grid();
  Settings settings;
  size_t start = 0;
  while (is_near_peak() && start + 1 < grid.size() && grid[start] < budget.count()) ++start;
  bool has_fit = false;
  int64_t misfits = 0;
  const int64_t max_misfits = kMaxMisfits * solver_.knob().grid_steps / 4;
  for (size_t i = start; i < grid.size() && misfits < max_misfits; ++i) {
    CKPLAN_ASSIGN_OR_RETURN(const Candidate* candidate, TryOnGrid(grid[i]));
    settings.insert(grid[i]);
    misfits = fits(*candidate) || !is_near_peak() ? 0 : misfits + 1;
    has_fit |= fits(*candidate);
    const Bytes peak = candidate->simulation.peak;
    if (is_near_peak() && (peak - budget).count() > budget.count() / kFarOff) break;
    if (fits(*candidate) && candidate->simulation.overhead == Cost(0)) return settings;
  }
  for (size_t i = start; i-- > 0 && !has_fit;) {
    CKPLAN_ASSIGN_OR_RETURN(const Candidate* candidate, TryOnGrid(grid[i]));
    settings.insert(grid[i]);
    has_fit = fits(*candidate);
  }
  return settings;
}

// Returns the plan of the canonical strategy {V}, or null unless the knob is a paper budget. Its
// only segment is the last one, which is kept, so it recomputes nothing. But Eq. 1 charges for all
// of it, so no setting of the knob leads to it.
const Candidate* KnobSearch::TryOneSegment() {
  if (solver_.knob().kind != Knob::Kind::kPaperBudget) return nullptr;
  if (one_segment_) return &*one_segment_;
  const VertexGraph& vertices = view_.problem.vertices;
  const CanonicalFigures figures =
      EvaluateCanonical(vertices, IdVector<NodeId, int32_t>(vertices.size()), 1);
  SolveOutcome outcome;
  outcome.strategy = LowerSetSequence{IdVector<NodeId, int32_t>(vertices.size()), 1};
  outcome.paper = {std::nullopt, figures.peak, figures.overhead};
  outcome.is_optimal = true;
  outcome.guarantee = "one segment fits the budget: nothing is recomputed";
  // Prefer an equal plan that has a setting.
  return &one_segment_.emplace(Evaluate(Candidate::kNoSetting, std::move(outcome)));
}

// Sets middle_ to a setting strictly between the two. Returns false if there is none.
bool KnobSearch::HalveGap(int64_t low, int64_t high) {
  middle_ = low + (high - low) / 2;
  return middle_ > low && high - low > low / 1000;
}

// Bisects between the best setting that fits and the next one that keeps more.
bool KnobSearch::HalveTowardsLessOverhead(const Candidate& best, const Settings& settings) {
  const auto at = settings.find(best.setting);
  if (solver_.knob().kind == Knob::Kind::kSegmentBudget) {
    return at != settings.begin() && HalveGap(*std::prev(at), best.setting);
  }
  return std::next(at) != settings.end() && HalveGap(best.setting, *std::next(at));
}

}  // namespace ckplan
