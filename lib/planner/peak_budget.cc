#include "lib/planner/peak_budget.h"

#include <fmt/format.h>

#include <cmath>
#include <string>

#include "lib/base/human_bytes.h"
#include "lib/plan/plan.h"
#include "lib/schedule/simulate.h"

namespace ckplan {
namespace {

std::string DescribeStep(const TensorGraph& graph, const Step& step) {
  if (step.kind == StepKind::kLoss) return "the loss";
  const char* verb = step.kind == StepKind::kForward ? "forward" : "backward";
  return fmt::format("{} of \"{}\"", verb, graph.node(step.node()).name);
}

}  // namespace

Bytes ConstantsInBudget(const TensorGraph& graph, const PlanRequest& request) {
  if (!request.total_budget.is_given()) return Bytes(0);
  return TotalConstants(graph.constants(),
                        OptimizerState(request.optimizer, graph.optimized_bytes()));
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

Bytes ActivationBudget(const TensorGraph& graph, const PlanRequest& request) {
  const bool is_share = PeakBudgetOf(request).kind == Budget::Kind::kPercent;
  return *BudgetInBytes(request, is_share ? KeepAllPeak(graph) : Bytes(0),
                        ConstantsInBudget(graph, request));
}

Error Infeasible(const PlanRequest& request, std::string_view who, Bytes budget, Bytes least,
                 Bytes covered, const std::string& where) {
  const Bytes whole = budget + covered;
  const Bytes needed = least + covered;
  return Error{
      ErrorCode::kInfeasible,
      fmt::format("infeasible: {} finds no plan within {} ({} bytes); the least it reaches is {} "
                  "({} bytes{})",
                  who, HumanBytes(whole), whole.count(), HumanBytes(needed), needed.count(),
                  where.empty() ? "" : ", needed at " + where),
      {},
      {"try",
       {{request.total_budget.is_given() ? "total_budget" : "budget",
         std::to_string(needed.count())}}}};
}

Error Infeasible(const TensorGraph& graph, const PlanRequest& request, std::string_view who,
                 Bytes least, const Step& step) {
  return Infeasible(request, who, ActivationBudget(graph, request), least,
                    ConstantsInBudget(graph, request), DescribeStep(graph, step));
}

bool MayReachLess(const SolverInfo& info, bool is_proven) {
  return info.knob == Knob::Kind::kPeakLimit && info.guarantee == Guarantee::kOptimalInClass &&
         !is_proven;
}

}  // namespace ckplan
