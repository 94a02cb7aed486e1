#include "lib/planner/peak_budget.h"

#include <fmt/format.h>

#include <cmath>
#include <string>

#include "lib/base/human_bytes.h"
#include "lib/plan/plan.h"
#include "lib/schedule/simulate.h"

namespace ckplan {
namespace {

// Names the step in a refusal.
std::string Described(const TrainingStep& of, const Step& step) {
  switch (step.kind) {
    case StepKind::kLoss:
      return "the loss";
    case StepKind::kBackward:
      return fmt::format("backward of \"{}\"", of.NameOf(step.node()));
    case StepKind::kRun:
      return fmt::format("the run of \"{}\"", of.NameOf(step.node()));
    case StepKind::kForward:
    case StepKind::kFree:
      break;
  }
  return fmt::format("forward of \"{}\"", of.NameOf(step.node()));
}

}  // namespace

Bytes ConstantsInBudget(const TrainingStep& step, const PlanRequest& request) {
  if (!request.total_budget.is_given()) return Bytes(0);
  return TotalConstants(step.constants(),
                        OptimizerState(request.optimizer, step.optimized_bytes()));
}

const Budget& PeakBudgetOf(const PlanRequest& request) {
  return request.total_budget.is_given() ? request.total_budget : request.budget;
}

std::optional<Bytes> BudgetInBytes(const PlanRequest& request, Bytes baseline_peak, Bytes covered) {
  const Budget& budget = PeakBudgetOf(request);
  if (budget.kind == Budget::Kind::kBytes) return budget.bytes - covered;
  if (budget.kind != Budget::Kind::kPercent) return std::nullopt;
  const Bytes baseline = baseline_peak + covered;
  const double share = static_cast<double>(baseline.count()) * budget.percent / 100;
  return Bytes(static_cast<int64_t>(std::floor(share))) - covered;
}

std::optional<Bytes> BudgetInBytes(const TrainingStep& step, const PlanRequest& request) {
  const bool is_share = PeakBudgetOf(request).kind == Budget::Kind::kPercent;
  return BudgetInBytes(request, is_share ? KeepAllPeak(step) : Bytes(0),
                       ConstantsInBudget(step, request));
}

Error Infeasible(const PlanProblem& problem, std::string_view subject, const Plan& least) {
  const PlanRequest& request = problem.request;
  const Bytes covered = ConstantsInBudget(problem.step, request);
  const Bytes whole = *problem.budget + covered;
  const Bytes needed = least.figures.peak + covered;
  const std::vector<Step>& steps = least.schedule.steps;
  const std::string where =
      steps.empty()
          ? ""
          : ", needed at " + Described(problem.step, steps[static_cast<size_t>(least.peak->step)]);
  return Error{
      ErrorCode::kInfeasible,
      fmt::format("infeasible: {} finds no plan within {} ({} bytes); the least it reaches is {} "
                  "({} bytes{})",
                  subject, HumanBytes(whole), whole.count(), HumanBytes(needed), needed.count(),
                  where),
      {},
      {"try",
       {{request.total_budget.is_given() ? "total_budget" : "budget",
         std::to_string(needed.count())}}}};
}

bool MayReachLess(const SolverInfo& info, bool is_proven) {
  return info.knob == Knob::Kind::kPeakLimit && info.guarantee == Guarantee::kOptimalInClass &&
         !is_proven;
}

}  // namespace ckplan
