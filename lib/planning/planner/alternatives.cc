#include "lib/planning/planner/alternatives.h"

#include <fmt/format.h>

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "lib/base/text.h"
#include "lib/planning/plan/accounting.h"
#include "lib/planning/plan/diff.h"
#include "lib/planning/plan/request_fields.h"
#include "lib/planning/planner/peak_budget.h"
#include "lib/planning/planner/planner.h"
#include "lib/planning/planner/registry.h"

namespace ckplan {
namespace {

// Algorithms that run in nearly linear time.
constexpr std::array<std::string_view, 6> kQuick = {"chen-greedy", "chen-sqrt",   "feng-acg",
                                                    "feng-linear", "hong-linear", "keep-all"};
// On larger graphs, even these algorithms are too slow for a suggestion.
constexpr size_t kMaxNodes = 2000;

struct ReachedPeak {
  Bytes peak;  // Includes all that the budget covers.
  std::string algorithm;
};

// Returns the request for another algorithm, without the fields that only fit the original one.
PlanRequest RequestForAlgorithm(std::string_view algorithm, PlanRequest request) {
  for (const RequestField& field : RequestFields()) {
    if (field.scope.is_of_algorithm) ResetField(field, &request);
  }
  request.algorithm = algorithm;
  request.objective = Objective::kTime;
  return request;
}

Result<ReachedPeak> FindLowestPeak(std::string_view algorithm, const TrainingStep& step,
                                   const PlanRequest& refused, const SolveLimits& limits) {
  PlanRequest request = RequestForAlgorithm(algorithm, refused);
  PeakBudgetIn(&request).kind = Budget::Kind::kMin;
  CKPLAN_ASSIGN_OR_RETURN(const Plan plan, MakePlan(step, request, limits));
  const Bytes reached =
      refused.memory.is_given()
          ? MinMemoryFor({step, refused, Bytes(0)}, plan.schedule, plan.figures.peak)
          : plan.figures.peak + CoveredByBudget(step, refused);
  return ReachedPeak{reached, std::string(algorithm)};
}

// Returns the quick algorithm with the lowest peak, or nothing if a stop came first.
std::optional<ReachedPeak> FindLowestQuickPeak(const TrainingStep& step, const PlanRequest& request,
                                               const SolveLimits& limits) {
  std::optional<ReachedPeak> least;
  const Result<const SolverInfo*> refusing = FindSolver(request.algorithm);
  for (const std::string_view algorithm : kQuick) {
    if (refusing.ok() && algorithm == (*refusing)->name) continue;
    Result<ReachedPeak> reach = FindLowestPeak(algorithm, step, request, limits);
    if (limits.stop.stop_requested()) return std::nullopt;
    if (reach.ok() && (!least || reach->peak < least->peak)) least = std::move(reach).value();
  }
  return least;
}

// Lists the options of the infeasible request that `best` doesn't support, as ", without the knob".
std::string DescribeDroppedOptions(const PlanRequest& refused) {
  std::string text;
  if (refused.setting) text += ", without the knob";
  if (refused.decisions) text += ", without the decisions";
  if (refused.objective == Objective::kMemory) text += ", without the objective";
  return text;
}

// Returns a note about the plan that `best` finds within the budget, or nothing if it finds none
// quickly.
std::optional<std::string> SuggestBest(const TrainingStep& step, const PlanRequest& refused,
                                       const SolveLimits& limits) {
  PlanRequest request = RequestForAlgorithm(kBestAlgorithm, refused);
  request.effort = SearchEffort::kQuick;
  const Result<Plan> plan = MakePlan(step, request, limits);
  if (!plan.ok()) return std::nullopt;
  return fmt::format("{0} fits and slows a step by {1:.1f} %: try --algo {0}{2}", kBestAlgorithm,
                     100 * StepOverheadRatio(plan->figures), DescribeDroppedOptions(refused));
}

}  // namespace

Error AddAlternative(Error refusal, const TrainingStep& step, const PlanRequest& request,
                     const SolveLimits& limits) {
  const bool limits_peak = PeakBudgetOf(request).is_given();
  // `auto` and `best` have already tried all others.
  const bool is_of_many =
      request.algorithm == kAutoAlgorithm || request.algorithm == kBestAlgorithm;
  if (!limits_peak || is_of_many || step.node_count() > kMaxNodes) return refusal;
  if (auto note = SuggestBest(step, request, limits)) {
    refusal.notes.push_back(*std::move(note));
    return refusal;
  }
  if (!step.has_forward()) return refusal;
  const std::optional<ReachedPeak> least = FindLowestQuickPeak(step, request, limits);
  if (!least) return refusal;
  const bool fits = MakePlan(step, RequestForAlgorithm(least->algorithm, request), limits).ok();
  if (limits.stop.stop_requested()) return refusal;
  const std::string reaches = fmt::format("{} reaches {} ({} bytes)", least->algorithm,
                                          HumanBytes(least->peak), least->peak.count());
  refusal.notes.push_back(fits ? fmt::format("{}, which fits", reaches)
                               : fmt::format("no other fast algorithm fits: {}", reaches));
  return refusal;
}

}  // namespace ckplan
