#include "lib/planning/planner/choose_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>

namespace ckplan {
namespace {

Result<const Candidate*> SolveForPaperBudget(const SolverInfo& info, const Knob& knob,
                                             const Budget& budget, KnobSearch* search) {
  if (knob.kind != Knob::Kind::kPaperBudget && knob.kind != Knob::Kind::kSegmentBudget) {
    const KnobInfo* const own = InfoOf(knob.kind);
    const std::string setting = own == nullptr ? "" : fmt::format("{}=...", own->name);
    return Error{ErrorCode::kUsage,
                 fmt::format("{} has no paper budget, unlike exact-dp", info.name),
                 {},
                 {"use", {{own == nullptr ? "budget" : "setting", setting}}}};
  }
  if (budget.kind == Budget::Kind::kMin) return search->At(knob.min);
  if (budget.bytes.count() < knob.min) {
    return Error{
        ErrorCode::kInfeasible,
        fmt::format("infeasible: {} has no plan with a paper budget of {} bytes; the minimum "
                    "is {} bytes",
                    info.name, budget.bytes.count(), knob.min),
        {},
        {"try", {{"paper_budget", "min"}}}};
  }
  return search->At(budget.bytes.count());
}

ChosenPlan MakeChosenPlan(const Candidate& candidate, const PlanProblem& problem,
                          const KnobSearch& search) {
  const bool fits = problem.Fits(candidate.simulation.peak, candidate.simulation.overhead);
  return {candidate, fits, search.was_stopped()};
}

// Returns the plan for the request's setting. It may exceed the request's budget.
Result<ChosenPlan> SolveForSetting(const SolverInfo& info, const PlanProblem& problem,
                                   const Knob& knob, KnobSearch* search) {
  const KnobSetting& setting = *problem.request.setting;
  if (!IsInRange(knob, setting.value)) {
    return MakeError(ErrorCode::kUsage,
                     fmt::format("{} is out of range for {}: on this graph {} is {}",
                                 TextOf(setting), info.name, setting.knob, RangeText(knob)));
  }
  CKPLAN_ASSIGN_OR_RETURN(const Candidate* chosen, search->At(setting.value));
  return MakeChosenPlan(*chosen, problem, *search);
}

Result<ChosenPlan> SolveForBudget(const PlanProblem& problem, KnobSearch* search) {
  if (problem.budget) {
    CKPLAN_ASSIGN_OR_RETURN(const Candidate* best, search->BestWithin(*problem.budget));
    if (best != nullptr) {
      CKPLAN_ASSIGN_OR_RETURN(best, search->Refine(best, *problem.budget));
      return MakeChosenPlan(*best, problem, *search);
    }
  }
  CKPLAN_ASSIGN_OR_RETURN(const Candidate* least, search->MinPeak());
  if (!problem.budget) {
    CKPLAN_ASSIGN_OR_RETURN(least, search->Refine(least, least->simulation.peak));
  } else if (search->was_stopped()) {
    // A longer search might have found a plan that fits.
    return MakeError(ErrorCode::kTimeout, "stopped");
  }
  return MakeChosenPlan(*least, problem, *search);
}

}  // namespace

Result<ChosenPlan> ChoosePlan(const SolverInfo& info, const View& view, const PlanProblem& problem,
                              const SolveLimits& limits) {
  CKPLAN_ASSIGN_OR_RETURN(const std::unique_ptr<PreparedSolver> solver,
                          info.prepare(view.problem, limits));
  KnobSearch search(view, solver.get(), limits);
  const Knob knob = solver->knob();
  CKPLAN_CHECK(knob.kind == info.knob, "the registry lists the algorithm's knob");
  if (problem.request.setting) return SolveForSetting(info, problem, knob, &search);
  if (problem.most_added) {
    CKPLAN_ASSIGN_OR_RETURN(const Candidate* least, search.MinPeakAdding(*problem.most_added));
    return MakeChosenPlan(*least, problem, search);
  }
  if (problem.balance) {
    CKPLAN_ASSIGN_OR_RETURN(const Candidate* best, search.Balanced(*problem.balance));
    return MakeChosenPlan(*best, problem, search);
  }
  if (!problem.request.paper_budget.is_given() && problem.has_budget()) {
    return SolveForBudget(problem, &search);
  }
  const Candidate* chosen = nullptr;
  if (problem.request.paper_budget.is_given()) {
    CKPLAN_ASSIGN_OR_RETURN(chosen,
                            SolveForPaperBudget(info, knob, problem.request.paper_budget, &search));
  } else {
    CKPLAN_ASSIGN_OR_RETURN(chosen, search.At(knob.preset));
  }
  return MakeChosenPlan(*chosen, problem, search);
}

std::optional<KnobSetting> SettingOf(const SolverInfo& info, const Candidate& chosen) {
  const KnobInfo* const knob = InfoOf(info.knob);
  if (knob == nullptr || chosen.setting == Candidate::kNoSetting) return std::nullopt;
  int64_t setting = chosen.setting;
  // The plan with the lowest peak may need more than its setting.
  if (info.knob == Knob::Kind::kPeakLimit) {
    setting = std::max(setting, chosen.outcome.paper.peak.count());
  }
  return KnobSetting{std::string(knob->name), setting};
}

}  // namespace ckplan
