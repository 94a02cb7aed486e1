#include "lib/planning/planner/peak_budget.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "lib/base/text.h"
#include "lib/planning/plan/accounting.h"
#include "lib/planning/plan/added_time.h"
#include "lib/planning/plan/optimizer_state.h"
#include "lib/planning/plan/outside.h"
#include "lib/planning/plan/plan.h"
#include "lib/problem/schedule/simulate.h"

namespace ckplan {
namespace {

// Describes an action in an error.
std::string Described(const TrainingStep& of, const Step& step) {
  switch (step.kind) {
    case StepKind::kLoss:
      return "the loss";
    case StepKind::kBackward:
      return fmt::format("backward of \"{}\"", of.NameOf(step.node()));
    case StepKind::kRun:
      return fmt::format("the run of \"{}\"", of.NameOf(step.node()));
    case StepKind::kOut:
    case StepKind::kDrop:
    case StepKind::kIn:
      return DescribeStep(of, step, /*has_run=*/false);
    case StepKind::kForward:
    case StepKind::kFree:
    case StepKind::kFreeGradient:
      break;
  }
  return fmt::format("forward of \"{}\"", of.NameOf(step.node()));
}

Budget PlanRequest::*PeakBudgetMember(const PlanRequest& request) {
  if (request.memory.is_given()) return &PlanRequest::memory;
  return request.total_budget.is_given() ? &PlanRequest::total_budget : &PlanRequest::budget;
}

std::string_view PeakBudgetField(const PlanRequest& request) {
  if (request.memory.is_given()) return "memory";
  return request.total_budget.is_given() ? "total_budget" : "budget";
}

}  // namespace

Bytes CoveredByBudget(const TrainingStep& step, const PlanRequest& request) {
  if (!request.total_budget.is_given() && !request.memory.is_given()) return Bytes(0);
  const Bytes constants =
      TotalConstants(step.constants(), OptimizerState(request, step.optimized()));
  if (!request.memory.is_given()) return constants;
  return constants - ArrivingGradients(step, request) + OutsideInMemory(request);
}

const Budget& PeakBudgetOf(const PlanRequest& request) {
  return request.*PeakBudgetMember(request);
}

Budget& PeakBudgetIn(PlanRequest* request) { return request->*PeakBudgetMember(*request); }

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
                       CoveredByBudget(step, request));
}

std::optional<Cost> MaxAddedTime(const TrainingStep& step, const PlanRequest& request) {
  if (!request.added_time.is_given()) return std::nullopt;
  return MostAdded(request.added_time.percent, step.cost());
}

std::optional<Balance> RequestedBalance(const TrainingStep& step, const PlanRequest& request) {
  if (PeakBudgetOf(request).kind != Budget::Kind::kBalanced) return std::nullopt;
  return Balance{step.cost(), CoveredByBudget(step, request)};
}

std::vector<Bytes> CurveBudgets(Bytes least, Bytes keep_all) {
  const int64_t low = least.count();
  const int64_t high = std::max(low, keep_all.count());
  std::vector<Bytes> budgets;
  for (int64_t i = 1; i < kCurveBudgets && low < high; ++i) {
    budgets.emplace_back(low + (high - low) / kCurveBudgets * i);
  }
  budgets.emplace_back(high);
  return budgets;
}

Error AddedTimeError(const PlanProblem& problem, std::string_view subject, const Plan& least) {
  const auto step = static_cast<double>(problem.step.cost().count());
  const double added = 100 * static_cast<double>(least.figures.overhead.count()) / step;
  // Round up, so that the remedy works.
  const double enough = std::ceil(added * 10) / 10;
  Error error = MakeError(
      ErrorCode::kInfeasible,
      fmt::format(
          "infeasible: {} found no plan that adds at most {:g} % to a step; its fastest plan "
          "adds {:.2f} %",
          subject, problem.request.added_time.percent, added));
  if (enough <= kLargestAddedPercent) {
    error.remedy = {"try", {{"added_time", fmt::format("{:.1f}%", enough)}}};
  }
  return error;
}

Error Infeasible(const PlanProblem& problem, std::string_view subject, const Plan& least) {
  const PlanRequest& request = problem.request;
  const Bytes covered = CoveredByBudget(problem.step, request);
  const Bytes whole = *problem.budget + covered;
  const bool is_of_device = request.memory.is_given();
  const Bytes needed = is_of_device ? MinMemoryFor({problem.step, request, Bytes(0)},
                                                   least.schedule, least.figures.peak)
                                    : least.figures.peak + covered;
  const std::vector<Step>& steps = least.schedule.steps;
  // With arriving gradients, the action that needs the most memory may not be the one at the peak.
  const bool is_elsewhere = is_of_device && ArrivingGradients(problem.step, request) > Bytes(0);
  const std::string where =
      steps.empty() || is_elsewhere
          ? ""
          : ", at " + Described(problem.step, steps[static_cast<size_t>(least.peak->step)]);
  return Error{
      ErrorCode::kInfeasible,
      fmt::format("infeasible: {} found no plan within {} ({} bytes); its smallest plan needs {} "
                  "({} bytes{})",
                  subject, HumanBytes(whole), whole.count(), HumanBytes(needed), needed.count(),
                  where),
      {},
      {"try", {{std::string(PeakBudgetField(request)), std::to_string(needed.count())}}}};
}

bool SmallerBudgetMayFit(const SolverInfo& info, bool is_proven) {
  return info.knob == Knob::Kind::kPeakLimit && info.guarantee == Guarantee::kOptimalInClass &&
         !is_proven;
}

}  // namespace ckplan
