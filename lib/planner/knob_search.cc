#include "lib/planner/knob_search.h"

#include <algorithm>
#include <tuple>

#include "lib/algorithms/kusumoto/canonical.h"
#include "lib/schedule/lower.h"
#include "lib/schedule/lower_without_liveness.h"
#include "lib/schedule/unfold.h"

namespace ckplan {
namespace {

constexpr int kRefinements = 4;
constexpr int64_t kMaxMisfits = 3;  // At 4 grid steps.
constexpr int64_t kFarOff = 5;      // A fifth above the budget.

// Less overhead is better, then less memory; of equals the one with the lower setting.
bool IsBetterForTime(const Candidate& a, const Candidate& b) {
  return std::tuple(a.simulation.overhead, a.simulation.peak, a.setting) <
         std::tuple(b.simulation.overhead, b.simulation.peak, b.setting);
}
bool IsBetterForMemory(const Candidate& a, const Candidate& b) {
  return std::tuple(a.simulation.peak, a.simulation.overhead, a.setting) <
         std::tuple(b.simulation.peak, b.simulation.overhead, b.setting);
}

}  // namespace

Strategy View::OnNodes(Strategy strategy) const {
  return fold ? Unfold(*fold, strategy) : strategy;
}

Schedule View::Lower(const Strategy& strategy) const {
  return uses_liveness ? LowerStrategy(graph, strategy) : LowerWithoutLiveness(graph, strategy);
}

Result<const Candidate*> KnobSearch::Try(int64_t setting) {
  const auto known = tried_.find(setting);
  if (known != tried_.end()) return &known->second;
  CKPLAN_ASSIGN_OR_RETURN(SolveOutcome outcome, solver_.Solve(setting, limits_));
  outcome.strategy = view_.OnNodes(std::move(outcome.strategy));
  Schedule schedule = view_.Lower(outcome.strategy);
  const Simulation simulation = simulator_.Run(schedule).value();
  const auto [it, is_new] = tried_.emplace(
      setting, Candidate{setting, std::move(outcome), std::move(schedule), simulation});
  return &it->second;
}

Result<const Candidate*> KnobSearch::BestWithin(Bytes budget) {
  if (solver_.knob().kind == Knob::Kind::kPaperBudget) {
    const Candidate* one_segment = TryOneSegment();
    if (one_segment->simulation.peak <= budget) return one_segment;
    tried_.erase(kOneSegment);  // It is no setting of the knob: its neighbours are none either.
  }
  CKPLAN_RETURN_IF_ERROR(TryAround(budget));
  for (int i = 0; i < kRefinements; ++i) {
    const Candidate* best = BestThatFits(budget);
    if (best == nullptr || best->simulation.overhead == Cost(0)) break;
    if (!HalveTowardsLessOverhead(*best)) break;
    CKPLAN_RETURN_IF_ERROR(Try(middle_));
  }
  return BestThatFits(budget);
}

// The best plan of all settings tried so far; null if none fits.
const Candidate* KnobSearch::BestThatFits(Bytes budget) const {
  const Candidate* found = nullptr;
  for (const auto& [setting, candidate] : tried_) {
    if (candidate.simulation.peak > budget) continue;
    if (found == nullptr || IsBetterForTime(candidate, *found)) found = &candidate;
  }
  return found;
}

Result<const Candidate*> KnobSearch::MinPeak() {
  CKPLAN_RETURN_IF_ERROR(TryGrid());
  const auto best = [&] {
    return &std::min_element(tried_.begin(), tried_.end(), [](const auto& a, const auto& b) {
              return IsBetterForMemory(a.second, b.second);
            })->second;
  };
  for (int i = 0; i < kRefinements; ++i) {
    const auto at = tried_.find(best()->setting);
    if (std::next(at) != tried_.end() && HalveGap(at->first, std::next(at)->first)) {
      CKPLAN_RETURN_IF_ERROR(Try(middle_));
    }
    if (at != tried_.begin() && HalveGap(std::prev(at)->first, at->first)) {
      CKPLAN_RETURN_IF_ERROR(Try(middle_));
    }
  }
  return best();
}

// From the least setting upwards in equal ratios to the end of the range.
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
  for (const int64_t setting : Grid()) CKPLAN_RETURN_IF_ERROR(Try(setting));
  return Done{};
}

// The part of the grid that matters for a budget. Where the knob is a budget on a whole plan, the
// simulated peak is mostly below it: start there, go up until several in a row do not fit or one
// is far off, and go down only if none did. Other knobs say nothing about the peak, and both ends
// of their range can need the most: all of the grid.
Result<Done> KnobSearch::TryAround(Bytes budget) {
  const auto fits = [&](const Candidate& c) { return c.simulation.peak <= budget; };
  const std::vector<int64_t> grid = Grid();
  const bool is_near_peak = solver_.knob().kind == Knob::Kind::kPaperBudget;
  size_t start = 0;
  while (is_near_peak && start + 1 < grid.size() && grid[start] < budget.count()) ++start;
  bool has_fit = false;
  int64_t misfits = 0;
  const int64_t max_misfits = kMaxMisfits * solver_.knob().grid_steps / 4;
  for (size_t i = start; i < grid.size() && misfits < max_misfits; ++i) {
    CKPLAN_ASSIGN_OR_RETURN(const Candidate* candidate, Try(grid[i]));
    misfits = fits(*candidate) || !is_near_peak ? 0 : misfits + 1;
    has_fit |= fits(*candidate);
    const Bytes peak = candidate->simulation.peak;
    if (is_near_peak && (peak - budget).count() > budget.count() / kFarOff) break;
    if (fits(*candidate) && candidate->simulation.overhead == Cost(0)) return Done{};
  }
  for (size_t i = start; i-- > 0 && !has_fit;) {
    CKPLAN_ASSIGN_OR_RETURN(const Candidate* candidate, Try(grid[i]));
    has_fit = fits(*candidate);
  }
  return Done{};
}

// The canonical strategy {V}. Its one segment is the last, which is kept, so it recomputes
// nothing; but Eq. 1 charges it in full, and no setting of a knob for Eq. 1 leads to it.
const Candidate* KnobSearch::TryOneSegment() {
  const VertexGraph& vertices = view_.problem.vertices;
  LowerSetSequence sequence{IdVector<NodeId, int32_t>(vertices.size()), 1};
  const CanonicalFigures figures = EvaluateCanonical(vertices, sequence.segment_of, 1);
  Candidate candidate;
  candidate.setting = kOneSegment;
  candidate.outcome.strategy = view_.OnNodes(std::move(sequence));
  candidate.schedule = view_.Lower(candidate.outcome.strategy);
  candidate.simulation = simulator_.Run(candidate.schedule).value();
  candidate.outcome.paper = {std::nullopt, figures.peak, figures.overhead};
  candidate.outcome.is_optimal = true;
  candidate.outcome.guarantee = "one segment fits the budget: nothing is recomputed";
  return &tried_.insert_or_assign(kOneSegment, std::move(candidate)).first->second;
}

// Sets middle_ to a setting strictly between two others, unless they are as good as neighbours.
bool KnobSearch::HalveGap(int64_t low, int64_t high) {
  middle_ = low + (high - low) / 2;
  return middle_ > low && high - low > low / 1000;
}

// The middle between the best setting that fits and its neighbour that keeps more.
bool KnobSearch::HalveTowardsLessOverhead(const Candidate& best) {
  const auto at = tried_.find(best.setting);
  if (solver_.knob().kind == Knob::Kind::kSegmentBudget) {
    return at != tried_.begin() && HalveGap(std::prev(at)->first, best.setting);
  }
  return std::next(at) != tried_.end() && HalveGap(best.setting, std::next(at)->first);
}

}  // namespace ckplan
