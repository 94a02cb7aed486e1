#include "lib/planner/choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>

#include "lib/planner/peak_budget.h"

namespace ckplan {
namespace {

Result<const Candidate*> SolveForPaperBudget(const SolverInfo& info, const Knob& knob,
                                             const Budget& budget, KnobSearch* search) {
  if (knob.kind != Knob::Kind::kPaperBudget && knob.kind != Knob::Kind::kSegmentBudget) {
    const KnobInfo* const own = InfoOf(knob.kind);
    const std::string setting = own == nullptr ? "" : fmt::format("{}=...", own->name);
    return Error{ErrorCode::kUsage,
                 fmt::format("{} has no budget of its own; a paper budget is for algorithms whose "
                             "paper has one, such as exact-dp",
                             info.name),
                 {},
                 {"use", {{own == nullptr ? "budget" : "setting", setting}}}};
  }
  if (budget.kind == Budget::Kind::kMin) return search->At(knob.min);
  if (budget.bytes.count() < knob.min) {
    return Error{
        ErrorCode::kInfeasible,
        fmt::format("infeasible: {} has no plan with a paper budget of {} bytes; the least "
                    "is {} bytes",
                    info.name, budget.bytes.count(), knob.min),
        {},
        {"try", {{"paper_budget", "min"}}}};
  }
  return search->At(budget.bytes.count());
}

// The plan of a setting that is asked for, which a budget may still refuse.
Result<const Candidate*> SolveForSetting(const TensorGraph& graph, const SolverInfo& info,
                                         const PlanRequest& request, const Knob& knob,
                                         KnobSearch* search) {
  const KnobSetting& setting = *request.setting;
  if (!IsInRange(knob, setting.value)) {
    return MakeError(ErrorCode::kUsage,
                     fmt::format("{} is out of range for {}: on this graph {} is {}",
                                 TextOf(setting), info.name, setting.knob, RangeText(knob)));
  }
  CKPLAN_ASSIGN_OR_RETURN(const Candidate* chosen, search->At(setting.value));
  const Budget& budget = PeakBudgetOf(request);
  if (!budget.is_given() || budget.kind == Budget::Kind::kMin) return chosen;
  const Simulation& simulation = chosen->simulation;
  if (simulation.peak <= ActivationBudget(graph, request)) return chosen;
  return Infeasible(graph, request, fmt::format("{} with {}", info.name, TextOf(setting)),
                    simulation.peak, chosen->schedule.steps[simulation.peak_step]);
}

Result<const Candidate*> SolveForBudget(const SolverInfo& info, const View& view,
                                        const PlanRequest& request, KnobSearch* search,
                                        std::optional<Bytes>* refused_least) {
  if (PeakBudgetOf(request).kind == Budget::Kind::kMin) {
    CKPLAN_ASSIGN_OR_RETURN(const Candidate* least, search->MinPeak());
    return search->Refine(least, least->simulation.peak);
  }
  const Bytes budget = ActivationBudget(view.graph, request);
  CKPLAN_ASSIGN_OR_RETURN(const Candidate* best, search->BestWithin(budget));
  if (best != nullptr) return search->Refine(best, budget);
  CKPLAN_ASSIGN_OR_RETURN(const Candidate* least, search->MinPeak());
  // A search that was stopped knows no least budget to name.
  if (search->was_stopped()) return MakeError(ErrorCode::kTimeout, "stopped");
  *refused_least = least->simulation.peak;
  Error error = Infeasible(view.graph, request, info.name, least->simulation.peak,
                           least->schedule.steps[least->simulation.peak_step]);
  if (MayReachLess(info, least->outcome.is_optimal)) error.notes.emplace_back(kMayReachLess);
  return error;
}

Result<const Candidate*> Choose(const SolverInfo& info, const View& view,
                                const PlanRequest& request, const Knob& knob, KnobSearch* search,
                                std::optional<Bytes>* least) {
  if (request.setting) return SolveForSetting(view.graph, info, request, knob, search);
  if (request.paper_budget.is_given()) {
    return SolveForPaperBudget(info, knob, request.paper_budget, search);
  }
  if (PeakBudgetOf(request).is_given()) return SolveForBudget(info, view, request, search, least);
  return search->At(knob.preset);
}

}  // namespace

Result<ChosenPlan> ChoosePlan(const SolverInfo& info, const View& view, const PlanRequest& request,
                              const SolveLimits& limits, std::optional<Bytes>* least) {
  CKPLAN_ASSIGN_OR_RETURN(const std::unique_ptr<PreparedSolver> solver,
                          info.prepare(view.problem, limits));
  KnobSearch search(view, solver.get(), limits);
  const Knob knob = solver->knob();
  CKPLAN_CHECK(knob.kind == info.knob, "the registry says what an algorithm's knob is");
  CKPLAN_ASSIGN_OR_RETURN(const Candidate* chosen,
                          Choose(info, view, request, knob, &search, least));
  return ChosenPlan{*chosen, search.was_stopped()};
}

std::optional<KnobSetting> SettingOf(const SolverInfo& info, const Candidate& chosen) {
  const KnobInfo* const knob = InfoOf(info.knob);
  if (knob == nullptr || chosen.setting == Candidate::kNoSetting) return std::nullopt;
  int64_t setting = chosen.setting;
  // The plan of least peak may need more than the setting that stands for it.
  if (info.knob == Knob::Kind::kPeakLimit) {
    setting = std::max(setting, chosen.outcome.paper.peak.count());
  }
  return KnobSetting{std::string(knob->name), setting};
}

}  // namespace ckplan
