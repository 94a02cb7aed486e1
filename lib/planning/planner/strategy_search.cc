#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/stop.h"
#include "lib/planning/plan/constraints.h"
#include "lib/planning/planner/choose_plan.h"
#include "lib/planning/planner/knob_search.h"
#include "lib/planning/planner/peak_budget.h"
#include "lib/planning/planner/registry.h"
#include "lib/planning/planner/solve.h"
#include "lib/problem/schedule/lower.h"
#include "lib/problem/schedule/simulate.h"

namespace ckplan {
namespace {

std::vector<Objective> ObjectivesOf(const SolverInfo& info, const PlanRequest& request) {
  if (request.objective != Objective::kAuto) return {request.objective};
  if (!info.takes_objective || request.setting) return {Objective::kTime};
  return {Objective::kTime, Objective::kMemory};
}

// A plan, and the algorithm and objective that found it.
struct Found {
  ChosenPlan plan;
  const SolverInfo* info = nullptr;
  Objective objective = Objective::kTime;
};

// Tells whether a plan is proven optimal for the request. Without a budget on the peak, the goal is
// the paper's own objective; with one, it is the least overhead. A search over settings proves
// neither that (unless nothing is recomputed) nor a minimal peak. If the budget is the setting,
// there is no search.
bool IsProven(const PlanProblem& problem, const Found& found) {
  const PlanRequest& request = problem.request;
  if (problem.optimizes_peak() || !found.plan.candidate.outcome.is_optimal) return false;
  const bool is_setting = found.info->knob == Knob::Kind::kPeakLimit && !problem.step.is_joint() &&
                          request.uses_liveness && request.granularity == Granularity::kNode &&
                          !HasConstraints(request) && !request.pipeline;
  return !problem.budget || is_setting || found.plan.candidate.simulation.overhead == Cost(0);
}

Answer AnswerOf(const SolverInfo& asked, const PlanProblem& problem, const Found& found) {
  const Candidate& chosen = found.plan.candidate;
  Answer answer;
  answer.schedule = chosen.schedule;
  answer.is_optimal = IsProven(problem, found);
  answer.guarantee = chosen.outcome.guarantee;
  answer.setting = SettingOf(*found.info, chosen);
  if (found.info != &asked) {
    // The requested algorithm's knob has no setting for this plan.
    const std::string setting =
        answer.setting ? fmt::format(" with {}", TextOf(*answer.setting)) : "";
    answer.guarantee = fmt::format("{}{}: {}", found.info->name, setting, answer.guarantee);
    answer.setting.reset();
  }
  if (found.plan.was_stopped && !answer.guarantee.starts_with(kStoppedEarly)) {
    answer.guarantee.insert(0, kStoppedEarly);
  }
  if (!problem.step.is_joint()) {
    answer.segment_of = SegmentsOf(problem.step.forward(), chosen.outcome.strategy);
  }
  if (SmallerBudgetMayFit(*found.info, chosen.outcome.is_optimal)) {
    answer.note = kSmallerBudgetMayFit;
  }
  answer.paper = chosen.outcome.paper;
  answer.objective = found.objective;
  return answer;
}

class StrategySearch {
 public:
  StrategySearch(const SolverInfo& info, const PlanProblem& problem, const SolveLimits& limits)
      : info_(info), problem_(problem), limits_(limits) {}

  Result<Answer> Run() {
    CKPLAN_RETURN_IF_ERROR(SearchBy(info_));
    if (problem_.has_budget() && !problem_.request.setting) {
      for (const SolverInfo* smaller : ContainedIn(info_.name)) {
        if (MayBeBetter()) CKPLAN_RETURN_IF_ERROR(SearchBy(*smaller));
      }
    }
    return AnswerOf(info_, problem_, best_ ? *best_ : *least_);
  }

 private:
  // Tells whether a better plan than the best so far may exist.
  bool MayBeBetter() const {
    return !best_ || problem_.optimizes_peak() || OverheadOf(*best_) > Cost(0);
  }

  // Tells which of two plans that don't fit comes nearer to the limits.
  bool IsNearer(const Found& a, const Found& b) const {
    return problem_.most_added ? OverheadOf(a) < OverheadOf(b) : PeakOf(a) < PeakOf(b);
  }

  static Cost OverheadOf(const Found& found) { return found.plan.candidate.simulation.overhead; }
  static Bytes PeakOf(const Found& found) { return found.plan.candidate.simulation.peak; }

  bool IsBetter(const Found& a, const Found& b) const {
    return problem_.IsBetter(a.plan.candidate.point(), b.plan.candidate.point());
  }

  Result<Done> SearchBy(const SolverInfo& info) {
    for (const Objective objective : ObjectivesOf(info, problem_.request)) {
      Result<ChosenPlan> plan = Choose(info, objective);
      if (!plan.ok()) {
        CKPLAN_RETURN_IF_ERROR(Tolerate(std::move(plan).error(), objective == Objective::kMemory));
        continue;
      }
      Found found{*std::move(plan), &info, objective};
      if (!found.plan.fits) {
        if (!least_ || IsNearer(found, *least_)) least_ = std::move(found);
        continue;
      }
      if (!best_ || IsBetter(found, *best_)) best_ = std::move(found);
      if (!problem_.optimizes_peak()) break;
    }
    return Done{};
  }

  Result<ChosenPlan> Choose(const SolverInfo& info, Objective objective) {
    const bool has_any = best_ || least_;
    return CatchOutOfMemory(info, limits_, [&] {
      return CatchStop([&] {
        std::optional<StopScope> scope;
        if (has_any) scope.emplace(limits_.stop);
        PollStop();
        PlanRequest request = problem_.request;
        request.objective = objective;
        const View view(problem_.step, request);
        return ChoosePlan(info, view, problem_, limits_);
      });
    });
  }

  // Ignores an error if there is already a plan. If a stop or a lack of memory caused it, marks the
  // search as stopped.
  Result<Done> Tolerate(Error error, bool is_second_objective) {
    const bool is_stopped = error.code == ErrorCode::kTimeout;
    // Only a stop of this search is tolerable; any other one ends everything without a plan.
    const bool ends_all = is_stopped && !limits_.stop.stop_requested();
    if (ends_all || (!best_ && !least_)) return error;
    if (is_stopped || (is_second_objective && IsOutOfMemory(error))) {
      if (!best_) return error;
      best_->plan.was_stopped = true;
    }
    return Done{};
  }

  const SolverInfo& info_;
  const PlanProblem& problem_;
  const SolveLimits& limits_;
  std::optional<Found> best_;   // The best plan that fits.
  std::optional<Found> least_;  // The lowest peak that does not fit.
};

// Adds the results of one search, after preparing once.
Result<Done> AddAnswersBy(const SolverInfo& info, const View& view, const PlanProblem& problem,
                          const SolveLimits& limits, std::vector<Answer>* answers) {
  CKPLAN_ASSIGN_OR_RETURN(const std::unique_ptr<PreparedSolver> solver,
                          info.prepare(view.problem, limits));
  KnobSearch search(view, solver.get(), limits);
  const auto add = [&](const Candidate& candidate) {
    answers->push_back(AnswerOf(info, problem, {{candidate, true, search.was_stopped()}, &info}));
  };
  CKPLAN_ASSIGN_OR_RETURN(const Candidate* least, search.MinPeak());
  add(*least);
  for (const Bytes budget : CurveBudgets(least->simulation.peak, KeepAllPeak(problem.step))) {
    CKPLAN_ASSIGN_OR_RETURN(const Candidate* best, search.BestWithin(budget));
    if (best != nullptr) add(*best);
  }
  return Done{};
}

}  // namespace

Result<Answer> SolveStrategies(const SolverInfo& info, const PlanProblem& problem,
                               const SolveLimits& limits) {
  return StrategySearch(info, problem, limits).Run();
}

Result<std::vector<Answer>> SolveForBudgets(const SolverInfo& info, const PlanProblem& problem,
                                            const SolveLimits& limits) {
  std::vector<Objective> objectives = {problem.request.objective};
  if (problem.request.objective == Objective::kAuto) {
    objectives = {Objective::kTime};
    if (info.takes_objective) objectives.push_back(Objective::kMemory);
  }
  std::vector<Answer> answers;
  for (const Objective objective : objectives) {
    PlanRequest request = problem.request;
    request.objective = objective;
    const View view(problem.step, request);
    CKPLAN_RETURN_IF_ERROR(AddAnswersBy(info, view, problem, limits, &answers));
    for (const SolverInfo* smaller : ContainedIn(info.name)) {
      CKPLAN_RETURN_IF_ERROR(AddAnswersBy(*smaller, view, problem, limits, &answers));
    }
  }
  return answers;
}

}  // namespace ckplan
