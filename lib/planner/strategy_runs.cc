#include "lib/planner/strategy_runs.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "lib/base/stop.h"
#include "lib/joint/expand.h"
#include "lib/planner/choice.h"
#include "lib/planner/containment.h"
#include "lib/planner/knob_search.h"

namespace ckplan {
namespace {

// The request with its budget in bytes of the step's own peak.
PlanRequest WithBudgetOf(const JointProblem& problem, bool wants_least_peak) {
  PlanRequest request = problem.request;
  request.budget = request.total_budget = {};
  if (problem.budget) request.budget = Budget::Of(*problem.budget);
  if (wants_least_peak) request.budget = {Budget::Kind::kMin, Bytes(0), 0};
  return request;
}

std::vector<Objective> ObjectivesOf(const SolverInfo& info, const PlanRequest& request) {
  if (request.objective != Objective::kAuto) return {request.objective};
  if (!info.takes_objective || request.setting) return {Objective::kTime};
  return {Objective::kTime, Objective::kMemory};
}

// One plan that was found, and by what.
struct Found {
  Candidate candidate;
  Objective objective = Objective::kTime;
  bool was_stopped = false;
  const SolverInfo* info = nullptr;
};

class StrategySearch {
 public:
  StrategySearch(const SolverInfo& info, const JointProblem& problem, const SolveLimits& limits)
      : info_(info), problem_(problem), limits_(limits) {}

  Result<JointOutcome> Run() {
    CKPLAN_RETURN_IF_ERROR(Search(/*wants_least_peak=*/problem_.wants_least_peak));
    if (!best_ && problem_.budget) CKPLAN_RETURN_IF_ERROR(Search(/*wants_least_peak=*/true));
    if (!best_) return *std::move(refusal_);
    return Outcome();
  }

 private:
  bool has_budget() const { return problem_.budget || problem_.wants_least_peak; }

  Result<Done> Search(bool wants_least_peak) {
    std::vector<const SolverInfo*> infos = {&info_};
    if (has_budget() && !problem_.request.setting) {
      for (const SolverInfo* smaller : ContainedIn(info_.name)) infos.push_back(smaller);
    }
    for (const SolverInfo* info : infos) {
      PlanRequest request = WithBudgetOf(problem_, wants_least_peak);
      for (const Objective objective : ObjectivesOf(*info, request)) {
        request.objective = objective;
        CKPLAN_ASSIGN_OR_RETURN(const bool has_plan, Try(*info, request, wants_least_peak));
        // The memory-centric plan counts where the other objective has none, or for the least peak.
        if (has_plan && !wants_least_peak) break;
      }
      if (best_ && !wants_least_peak && best_->candidate.simulation.overhead == Cost(0)) break;
    }
    return Done{};
  }

  // Returns whether the algorithm has such a plan, and keeps the best.
  Result<bool> Try(const SolverInfo& info, const PlanRequest& request, bool wants_least_peak) {
    PollStop();
    const View view({problem_.graph, *problem_.forward}, request);
    std::optional<Bytes> least;
    Result<ChosenPlan> chosen = ChoosePlan(info, view, request, limits_, &least);
    if (!chosen.ok() && chosen.error().code == ErrorCode::kInfeasible) {
      if (!refusal_) refusal_ = std::move(chosen).error();
      return false;
    }
    if (!chosen.ok()) {
      if (!best_) return std::move(chosen).error();
      best_->was_stopped |= chosen.error().code == ErrorCode::kTimeout;
      return false;
    }
    Found found{std::move(chosen->candidate), request.objective, chosen->was_stopped, &info};
    if (!best_ || RankOf(found, wants_least_peak) < RankOf(*best_, wants_least_peak)) {
      best_ = std::move(found);
    }
    return true;
  }

  static std::tuple<int64_t, int64_t> RankOf(const Found& found, bool wants_least_peak) {
    const int64_t peak = found.candidate.simulation.peak.count();
    const int64_t overhead = found.candidate.simulation.overhead.count();
    return wants_least_peak ? std::tuple(peak, overhead) : std::tuple(overhead, peak);
  }

  JointOutcome Outcome() const {
    const Candidate& chosen = best_->candidate;
    JointOutcome outcome;
    outcome.runs = RunsOf(problem_.forward->step_of, chosen.schedule);
    // A search over settings proves nothing of the step's peak.
    outcome.is_optimal =
        chosen.outcome.is_optimal && (!has_budget() || chosen.simulation.overhead == Cost(0));
    outcome.guarantee = chosen.outcome.guarantee;
    const std::optional<KnobSetting> setting = SettingOf(*best_->info, chosen);
    if (best_->info != &info_) {
      outcome.guarantee =
          fmt::format("{}{}: {}", best_->info->name,
                      setting ? fmt::format(" with {}", TextOf(*setting)) : "", outcome.guarantee);
    } else {
      outcome.setting = setting;
    }
    if (best_->was_stopped && !outcome.guarantee.starts_with(kStoppedEarly)) {
      outcome.guarantee.insert(0, kStoppedEarly);
    }
    outcome.paper = chosen.outcome.paper;
    outcome.objective = best_->objective;
    return outcome;
  }

  const SolverInfo& info_;
  const JointProblem& problem_;
  const SolveLimits& limits_;
  std::optional<Found> best_;
  std::optional<Error> refusal_;
};

}  // namespace

Result<JointOutcome> SolveByStrategies(const SolverInfo& info, const JointProblem& problem,
                                       const SolveLimits& limits) {
  return StrategySearch(info, problem, limits).Run();
}

}  // namespace ckplan
