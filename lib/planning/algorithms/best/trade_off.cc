#include "lib/planning/algorithms/best/trade_off.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "lib/planning/algorithms/best/curve/trade_off_curve.h"
#include "lib/problem/schedule/simulate.h"

namespace ckplan {

namespace {

constexpr int kMaxTrials = 11;
constexpr int kMaxTrialsInVain = 6;  // In a row.
constexpr int kMaxTrialsBelowCurve = 3;
// Below a curve, the last trials are for a plan with a peak that is lower by one part in this many.
constexpr int64_t kLastStepParts = 1'024;

// If plans may add at most a step divided by this, programs over moments are fast, while the curve,
// with few reruns to choose from, leaves larger gaps.
constexpr int64_t kLittleParts = 20;

// LowerPeakWithin ends after this many searches, or within the largest peak divided by kNearPeaks.
constexpr int kMaxLowerings = 4;
constexpr int64_t kNearPeaks = 256;

// Returns the work of programs over all trials. Small graphs are mostly settled in a few
// milliseconds; otherwise each trial would use all of its work.
int64_t ProgramWorkLimit(const BestWork& work, int32_t op_count) {
  const int64_t ops = std::min<int64_t>(op_count, work.full_ops);
  return std::max(work.programs, kMaxTrials * work.programs / work.full_ops * ops);
}

}  // namespace

Result<LeastPeak> FindMinPeak(BestProblem* problem, BestOptions options, int64_t reached,
                              std::optional<int64_t> known_refused) {
  Simulator simulator(problem->graph());
  LeastPeak least;
  least.bound.bytes = Bytes(problem->certificates().least_peak_any_plan);
  options.enough = std::numeric_limits<int64_t>::max() / 2;  // Any plan that fits is good enough.
  int64_t left = ProgramWorkLimit(options.work, problem->flat().op_count);
  TradeOffCurve* const curve = problem->curve();
  const auto take_from_curve = [&] {
    if (curve->plans().front().peak >= reached) return;
    reached = curve->plans().front().peak;
    least.runs = curve->plans().front().runs;
  };
  take_from_curve();
  int64_t refused = known_refused.value_or(least.bound.bytes.count() - 1);
  // Where the bound was refused, the curve has been searched, too.
  int in_vain = known_refused ? kMaxTrialsInVain - kMaxTrialsBelowCurve : 0;
  for (int trial = known_refused ? 1 : 0; trial < kMaxTrials && refused + 1 < reached; ++trial) {
    const bool is_last = in_vain == kMaxTrialsInVain;
    if (is_last) refused = std::max(refused, reached - reached / kLastStepParts - 1);
    options.budget = trial == 0 || is_last ? refused + 1 : refused + (reached - refused) / 2;
    options.work.programs = std::clamp<int64_t>(left, 0, options.work.programs);
    CKPLAN_ASSIGN_OR_RETURN(BestOutcome tried, SolveBest(problem, options));
    left -= tried.program_work;
    if (tried.least_peak.bytes > least.bound.bytes) least.bound = tried.least_peak;
    if (tried.runs) {
      reached = simulator.Run(*tried.runs).value().peak.count() +
                BytesOfOthers(problem->flat(), *tried.runs);
      least.runs = std::move(tried.runs);
      options.starts = {*least.runs};
      if (!is_last) in_vain = 0;
      continue;
    }
    if (is_last || (!tried.is_infeasible && ++in_vain == kMaxTrialsInVain && !known_refused)) break;
    // The proof holds for all plans that the search considers.
    refused = std::max(options.budget, tried.least_peak.bytes.count() - 1);
  }
  curve->ReadWithin(*options.enough, options.work.curve);
  take_from_curve();
  return least;
}

Result<Done> LowerPeakWithin(int64_t most_added, BestProblem* problem) {
  const RunProblem& flat = problem->flat();
  const bool is_little = most_added <= flat.total_cost / kLittleParts;
  if (flat.op_count > (is_little ? kMaxProgramOps : kFewProgramOps)) return Done{};
  TradeOffCurve* const curve = problem->curve();
  BestOptions options;
  options.work = kBriefWork;
  options.is_order_free = false;
  options.enough = std::max(most_added, curve->Fastest().overhead);
  int64_t refused = curve->MinPeakWithin(*options.enough) - 1;
  for (int trial = 0; trial < kMaxLowerings; ++trial) {
    const int64_t reached = curve->LeastWithin(*options.enough).peak;
    if (reached - refused <= std::max<int64_t>(curve->Fastest().peak / kNearPeaks, 1)) break;
    options.budget = refused + (reached - refused) / 2;
    CKPLAN_ASSIGN_OR_RETURN(const BestOutcome tried, SolveBest(problem, options));
    if (tried.runs && tried.overhead <= *options.enough) continue;
    refused = std::max(options.budget, tried.least_peak.bytes.count() - 1);
  }
  return Done{};
}

TradeOff::TradeOff(std::unique_ptr<PlanSearch> search, const Schedule& first)
    : search_(std::move(search)) {
  Add(first);
  first_peak_ = plans_.front().peak;
}

Result<Done> TradeOff::SearchWithin(int64_t most_added, int64_t close_parts) {
  return HalveFor(std::max(most_added, Fastest().overhead), close_parts);
}

Result<Done> TradeOff::SearchMin(int64_t close_parts) {
  // Plans of chains reach the lower bound.
  const int64_t least = search_->LeastPeak();
  if (least < Least().peak) CKPLAN_RETURN_IF_ERROR(Try(least, kAnyTime));
  return HalveFor(kAnyTime, close_parts);
}

Result<Done> TradeOff::SearchEvenly(int64_t count) {
  const int64_t low = std::min(first_peak_, search_->LeastPeak());
  for (int64_t i = 0; i < count; ++i) {
    CKPLAN_RETURN_IF_ERROR(Try(low + (first_peak_ - low) / count * i, std::nullopt));
  }
  return Done{};
}

Result<Done> TradeOff::SearchForBalance(const Balance& balance) {
  constexpr int kRounds = 4;
  for (int i = 0; i < kRounds; ++i) {
    const std::vector<CurvePoint> known = Points();
    for (const Bytes budget : balance.BudgetsBesideBest(known)) {
      CKPLAN_RETURN_IF_ERROR(Try(budget.count(), std::nullopt));
    }
    if (Points() == known) break;
  }
  return Done{};
}

std::vector<CurvePoint> TradeOff::Points() const {
  std::vector<CurvePoint> points;
  for (const PricedPlan& plan : plans_) points.push_back({Bytes(plan.peak), Cost(plan.overhead)});
  return points;
}

const PricedPlan& TradeOff::At(const CurvePoint& point) const {
  return *std::find_if(plans_.begin(), plans_.end(), [&](const PricedPlan& plan) {
    return plan.peak == point.peak.count() && plan.overhead == point.overhead.count();
  });
}

const PricedPlan& TradeOff::LeastWithin(int64_t most_added) const {
  const auto first = std::find_if(plans_.begin(), plans_.end(), [&](const PricedPlan& plan) {
    return plan.overhead <= most_added;
  });
  return first == plans_.end() ? Fastest() : *first;
}

Result<Done> TradeOff::HalveFor(int64_t most_added, int64_t close_parts) {
  const int64_t close = first_peak_ / close_parts;
  for (;;) {
    const int64_t refused = RefusedFor(most_added);
    const int64_t reached = LeastWithin(most_added).peak;
    if (reached - refused <= std::max<int64_t>(close, 1)) return Done{};
    CKPLAN_RETURN_IF_ERROR(Try(refused + (reached - refused) / 2, most_added));
  }
}

// Returns the largest memory for which no plan was found that adds so little.
int64_t TradeOff::RefusedFor(int64_t most_added) const {
  int64_t refused = search_->LeastPeak() - 1;
  for (const Refusal& refusal : refusals_) {
    if (refusal.most_added >= most_added) refused = std::max(refused, refusal.budget);
  }
  return refused;
}

Result<Done> TradeOff::Try(int64_t budget, std::optional<int64_t> enough) {
  const Schedule* start = nullptr;
  for (const PricedPlan& plan : plans_) {
    if (plan.peak <= budget) start = &plan.schedule;
  }
  CKPLAN_ASSIGN_OR_RETURN(const PlanSearch::Found found, search_->Find(budget, enough, start));
  std::optional<PricedPlan> priced;
  if (found.plan) priced = search_->Priced(*found.plan);
  if (priced) Add(*priced);
  if (!enough || (priced && priced->overhead <= *enough)) return Done{};
  // The proof holds for all plans that the search considers.
  refusals_.push_back({std::max(budget, found.least_peak - 1), *enough});
  return Done{};
}

void TradeOff::Add(Schedule schedule) { Add(search_->Priced(std::move(schedule))); }

void TradeOff::Add(PricedPlan added) {
  const auto equals_or_betters = [](const PricedPlan& a, const PricedPlan& b) {
    return a.peak <= b.peak && a.overhead <= b.overhead;
  };
  for (const PricedPlan& plan : plans_) {
    if (equals_or_betters(plan, added)) return;
  }
  std::erase_if(plans_, [&](const PricedPlan& plan) { return equals_or_betters(added, plan); });
  const auto at = std::find_if(plans_.begin(), plans_.end(),
                               [&](const PricedPlan& plan) { return plan.peak > added.peak; });
  plans_.insert(at, std::move(added));
}

}  // namespace ckplan
