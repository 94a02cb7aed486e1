#include "lib/planning/planner/planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "lib/base/stop.h"
#include "lib/base/text.h"
#include "lib/planning/plan/request_fields.h"
#include "lib/planning/planner/check_request.h"
#include "lib/planning/planner/guarantees.h"
#include "lib/planning/planner/memory_attempts.h"
#include "lib/planning/planner/one_algorithm.h"
#include "lib/planning/planner/peak_budget.h"
#include "lib/planning/planner/plan_problem.h"
#include "lib/planning/planner/solve.h"
#include "lib/problem/schedule/training_step.h"

namespace ckplan {
namespace {

// Tells whether plan a is a better solution than plan b. Names break ties.
bool IsBetter(const Plan& a, const Plan& b, const PlanProblem& problem) {
  const CurvePoint point_a{a.figures.peak, a.figures.overhead};
  const CurvePoint point_b{b.figures.peak, b.figures.overhead};
  if (point_a == point_b) return a.request.algorithm < b.request.algorithm;
  return problem.IsBetter(point_a, point_b);
}

// Fast algorithms come first, so that a time limit only cuts short the slow ones.
std::vector<const SolverInfo*> SolversBySpeed(const PlanRequest& request) {
  std::vector<const SolverInfo*> solvers;
  for (const SolverInfo& info : AllSolvers()) solvers.push_back(&info);
  if (request.offload) {
    for (const SolverInfo& info : OffloadSolvers()) solvers.push_back(&info);
  }
  std::stable_partition(solvers.begin(), solvers.end(),
                        [](const SolverInfo* info) { return !IsSlow(*info); });
  return solvers;
}

// Ranks errors by how well they explain why no algorithm has a plan. Errors that only say that an
// algorithm doesn't support the request or the graph rank lowest.
int ErrorPriority(ErrorCode code) {
  if (code == ErrorCode::kTimeout) return 2;
  return code == ErrorCode::kInfeasible ? 1 : 0;
}

// Returns the best plan of all algorithms, or the error that best explains why none has a plan.
Result<Plan> FindBestPlan(const TrainingStep& step, const PlanRequest& request,
                          const SolveLimits& limits, Shortage* shortage) {
  const PlanProblem problem = ProblemOf(step, request);
  std::optional<Plan> best;
  std::optional<Error> failure;
  for (const SolverInfo* info : SolversBySpeed(request)) {
    Result<Plan> plan = MakePlanBy(*info, step, request, limits);
    if (plan.ok()) {
      if (!best || IsBetter(*plan, *best, problem)) best = std::move(plan).value();
      continue;
    }
    const ErrorCode code = plan.error().code;
    if (code == ErrorCode::kTimeout) shortage->of_time.emplace_back(info->name);
    if (IsOutOfMemory(plan.error())) shortage->of_memory.emplace_back(info->name);
    if (!failure || ErrorPriority(code) > ErrorPriority(failure->code)) {
      failure = std::move(plan).error();
    }
  }
  if (best) return *std::move(best);
  return *std::move(failure);
}

Result<Plan> MakeAutoPlan(const SolverInfo& info, const TrainingStep& step,
                          const PlanRequest& request, const SolveLimits& limits,
                          Shortage* shortage) {
  CKPLAN_RETURN_IF_ERROR(CheckRequest(info, step, request));
  if (!PeakBudgetOf(request).is_given() && !request.added_time.is_given()) {
    return Error{ErrorCode::kUsage,
                 "auto needs a budget or a limit on the added time",
                 {},
                 {"add", {{"budget", "60%"}}}};
  }
  Result<Plan> best = FindBestPlan(step, request, limits, shortage);
  const bool is_refused = !best.ok() && best.error().code == ErrorCode::kInfeasible;
  if (!is_refused || request.added_time.is_given()) return best;
  PlanRequest least = request;
  PeakBudgetIn(&least).kind = Budget::Kind::kMin;
  Shortage unreported;
  CKPLAN_ASSIGN_OR_RETURN(const Plan plan, FindBestPlan(step, least, limits, &unreported));
  const PlanProblem problem{step, request, BudgetInBytes(step, request)};
  return Infeasible(problem, fmt::format("auto ({} came closest)", plan.request.algorithm), plan);
}

}  // namespace

Result<Plan> MakePlan(const TrainingStep& step, const PlanRequest& request,
                      const SolveLimits& limits, Shortage* shortage) {
  CKPLAN_ASSIGN_OR_RETURN(const SolverInfo* info, FindSolver(request.algorithm));
  Shortage unreported;
  const auto make = [&](const PlanRequest& asked) {
    if (info->name != kAutoAlgorithm) return MakePlanBy(*info, step, asked, limits);
    return MakeAutoPlan(*info, step, asked, limits, shortage != nullptr ? shortage : &unreported);
  };
  if (request.memory.kind != Budget::Kind::kBytes) return make(request);
  return PlanWithinMemory(step, request, limits, make);
}

Result<Plan> MakePlan(const Source& source, const PlanRequest& request, const SolveLimits& limits,
                      Shortage* shortage) {
  // Checking the request and explaining an error also walk the graph, so a stop must work there,
  // too.
  CKPLAN_ASSIGN_OR_RETURN(
      Plan plan, CatchStop([&] { return MakePlan(source.step(), request, limits, shortage); }));
  for (const RequestField& field : RequestFields()) {
    if (field.part != RequestField::Part::kPlan) CopyField(field, source.request, &plan.request);
  }
  plan.model = source.identity;
  return plan;
}

}  // namespace ckplan
