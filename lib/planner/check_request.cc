#include "lib/planner/check_request.h"

#include <fmt/format.h>

#include <string>

#include "lib/planner/registry.h"

namespace ckplan {

Result<Done> CheckObjective(const SolverInfo& info, const PlanRequest& request) {
  if (request.objective != Objective::kMemory || info.takes_objective) return Done{};
  return MakeError(ErrorCode::kUsage,
                   fmt::format("the objective \"memory\" is for exact-dp and approx-dp; {} has "
                               "no memory-centric form",
                               info.name));
}

Result<Done> CheckSetting(const SolverInfo& info, const PlanRequest& request) {
  if (!request.setting) return Done{};
  const std::string& wanted = request.setting->knob;
  const KnobInfo* const knob = InfoOf(info.knob);
  if (info.name == kAutoAlgorithm) {
    return MakeError(ErrorCode::kUsage,
                     fmt::format("auto tries the settings of all algorithms; name the one whose "
                                 "{} is meant",
                                 wanted));
  }
  if (knob == nullptr || knob->name != wanted) {
    const std::string has = knob == nullptr ? ", nor any other"
                                            : fmt::format("; its knob is {}, {}: {}", knob->name,
                                                          knob->meaning, knob->range);
    return MakeError(ErrorCode::kUsage, fmt::format("{} has no knob {}{}", info.name, wanted, has));
  }
  if (!request.paper_budget.is_given()) return Done{};
  return MakeError(ErrorCode::kUsage, fmt::format("a paper budget and {} both set the knob of {}",
                                                  TextOf(*request.setting), info.name));
}

Result<Done> CheckDecider(const SolverInfo& info, const PlanRequest& request) {
  if (!request.decisions || info.name == kGivenAlgorithm) return Done{};
  return Error{ErrorCode::kUsage,
               fmt::format("{} decides itself; decisions are for the algorithm given", info.name),
               {},
               {"add", {{"algorithm", std::string(kGivenAlgorithm)}}}};
}

Result<Done> CheckTakesOrder(const SolverInfo& info, const PlanRequest& request) {
  const bool takes_any = info.name == kBestAlgorithm || info.name == kGivenAlgorithm;
  if (request.order == StepOrder::kModel || takes_any) return Done{};
  return Error{ErrorCode::kUsage,
               fmt::format("{} plans in the model's order; best and given take any", info.name),
               {},
               {"use", {{"algorithm", std::string(kBestAlgorithm)}}}};
}

Result<Done> CheckOneBudget(const PlanRequest& request) {
  const int budgets = int{request.budget.is_given()} + int{request.total_budget.is_given()} +
                      int{request.paper_budget.is_given()};
  if (budgets <= 1) return Done{};
  return MakeError(ErrorCode::kUsage, "a plan is made for one budget, but several are given");
}

}  // namespace ckplan
