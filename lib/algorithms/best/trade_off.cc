#include "lib/algorithms/best/trade_off.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

namespace ckplan {
namespace {

constexpr int64_t kAnyTime = std::numeric_limits<int64_t>::max() / 2;

}  // namespace

TradeOff::TradeOff(BestProblem* problem, const BestOptions& options, const Runs& first)
    : problem_(problem), options_(options), simulator_(problem->graph()) {
  Add(first);
  first_peak_ = plans_.front().peak;
}

Result<Done> TradeOff::SearchWithin(int64_t most_added, int64_t close_parts) {
  return HalveFor(std::max(most_added, Fastest().overhead), close_parts);
}

Result<Done> TradeOff::SearchLeast(int64_t close_parts) {
  // Plans of chains reach the lower bound.
  const int64_t least = problem_->certificates().least_peak_any_plan;
  if (least < Least().peak) CKPLAN_RETURN_IF_ERROR(Try(least, kAnyTime));
  return HalveFor(kAnyTime, close_parts);
}

Result<Done> TradeOff::SearchEvenly(int64_t count) {
  const int64_t low = std::min(first_peak_, problem_->certificates().least_peak_any_plan);
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
  for (const PricedRuns& plan : plans_) points.push_back({Bytes(plan.peak), Cost(plan.overhead)});
  return points;
}

const PricedRuns& TradeOff::At(const CurvePoint& point) const {
  return *std::find_if(plans_.begin(), plans_.end(), [&](const PricedRuns& plan) {
    return plan.peak == point.peak.count() && plan.overhead == point.overhead.count();
  });
}

const PricedRuns& TradeOff::LeastWithin(int64_t most_added) const {
  const auto first = std::find_if(plans_.begin(), plans_.end(), [&](const PricedRuns& plan) {
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
  int64_t refused = problem_->certificates().least_peak_any_plan - 1;
  for (const Refusal& refusal : refusals_) {
    if (refusal.most_added >= most_added) refused = std::max(refused, refusal.budget);
  }
  return refused;
}

Result<Done> TradeOff::Try(int64_t budget, std::optional<int64_t> enough) {
  BestOptions options = options_;
  options.budget = budget;
  options.enough = enough;
  for (const PricedRuns& plan : plans_) {
    if (plan.peak <= budget) options.starts = {plan.runs};
  }
  CKPLAN_ASSIGN_OR_RETURN(const BestOutcome outcome, SolveBest(problem_, options));
  if (outcome.runs) Add(*outcome.runs);
  if (!enough || (outcome.runs && outcome.overhead <= *enough)) return Done{};
  // The proof holds for all plans that the search looks for.
  refusals_.push_back({std::max(budget, outcome.least_peak.bytes.count() - 1), *enough});
  return Done{};
}

void TradeOff::Add(const Runs& runs) {
  const Simulation simulation = simulator_.Run(runs).value();
  PricedRuns added{runs, simulation.peak.count(),
                   (simulation.cost - problem_->graph().cost()).count()};
  const auto equals_or_betters = [](const PricedRuns& a, const PricedRuns& b) {
    return a.peak <= b.peak && a.overhead <= b.overhead;
  };
  for (const PricedRuns& plan : plans_) {
    if (equals_or_betters(plan, added)) return;
  }
  std::erase_if(plans_, [&](const PricedRuns& plan) { return equals_or_betters(added, plan); });
  const auto at = std::find_if(plans_.begin(), plans_.end(),
                               [&](const PricedRuns& plan) { return plan.peak > added.peak; });
  plans_.insert(at, std::move(added));
}

}  // namespace ckplan
