#include "lib/planning/planner/one_algorithm.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>

#include "lib/base/stop.h"
#include "lib/base/text.h"
#include "lib/planning/plan/assemble.h"
#include "lib/planning/plan/check.h"
#include "lib/planning/plan/check_constraints.h"
#include "lib/planning/plan/offload_terms.h"
#include "lib/planning/plan/optimizer_state.h"
#include "lib/planning/planner/apply_constraints.h"
#include "lib/planning/planner/best_planner.h"
#include "lib/planning/planner/check_request.h"
#include "lib/planning/planner/constants_shortage.h"
#include "lib/planning/planner/guarantees.h"
#include "lib/planning/planner/peak_budget.h"
#include "lib/planning/planner/plan_problem.h"
#include "lib/planning/planner/solve.h"
#include "lib/problem/schedule/training_step.h"

namespace ckplan {
namespace {

// Returns the request as plans store it: with the algorithm's main name, and one budget in bytes.
PlanRequest SettleRequest(const PlanProblem& problem, const SolverInfo& info, const Answer& answer,
                          Bytes peak) {
  PlanRequest settled = problem.request;
  const TrainingStep& step = problem.step;
  if (!step.is_joint() && step.forward().backward() == BackwardForm::kByInput) {
    settled.backward = BackwardSteps::kByInput;
  }
  settled.algorithm = info.name;
  settled.objective = answer.objective;
  if (settled.paper_budget.is_given() && answer.paper && answer.paper->budget) {
    settled.paper_budget = Budget::Of(*answer.paper->budget);
  }
  // Runs of a joint graph may come in any order.
  if (problem.step.is_joint()) settled.order = StepOrder::kModel;
  settled.budget = settled.total_budget = settled.memory = settled.added_time = {};
  settled.reserve.reset();
  if (problem.optimizes_peak()) settled.budget = Budget::Of(peak);
  if (problem.budget) settled.budget = Budget::Of(*problem.budget);
  return settled;
}

Arena SkipPlacement(const Timeline& timeline) {
  return {Bytes(0), std::vector<Bytes>(timeline.buffers.size())};
}

// Turns the answer into a plan, even if it exceeds the budget.
Plan PlanOf(const PlanProblem& problem, const SolverInfo& info, const Answer& answer,
            PlanDetail detail = PlanDetail::kWhole) {
  const bool is_tight = problem.step.is_joint() || info.name == kBestAlgorithm;
  const auto place = detail == PlanDetail::kFigures ? SkipPlacement
                     : is_tight                     ? PlaceTightly
                                                    : PlaceBuffers;
  Plan plan = AssemblePlan(problem.step, answer.schedule, answer.segment_of, place);
  plan.request = SettleRequest(problem, info, answer, plan.figures.peak);
  if (answer.paper) plan.figures.paper = *answer.paper;
  plan.figures.setting = answer.setting;
  plan.figures.is_optimal =
      answer.is_optimal && (!problem.optimizes_peak() || info.name == kBestAlgorithm);
  plan.figures.guarantee = answer.guarantee;
  if (answer.lower_bound) plan.figures.lower_bound_cost = answer.lower_bound;
  if (answer.certificate) AddCertificate(*answer.certificate, &plan.figures);
  // Only a plan without limits shows the curve that it was chosen from.
  if (!problem.has_budget()) plan.figures.curve = answer.curve;
  plan.figures.optimizer_state = OptimizerState(problem.request, problem.step.optimized());
  return plan;
}

Plan CheckFinishedPlan(const PlanProblem& problem, Plan plan) {
  const std::vector<std::string> faults = CheckPlan(problem.step, plan);
  CKPLAN_CHECK(faults.empty(), faults.front());
  return plan;
}

Error RefusalError(const PlanProblem& problem, const SolverInfo& info, const Answer& answer,
                   const Plan& least) {
  const std::string who = problem.request.setting ? fmt::format("{} with {}", info.name,
                                                                TextOf(*problem.request.setting))
                                                  : std::string(info.name);
  if (problem.most_added) return AddedTimeError(problem, who, least);
  Error error = Infeasible(problem, who, least);
  const PlanFigures& figures = least.figures;
  if (auto note = ConstantsNote(figures.constants, figures.optimizer_state, problem.request)) {
    error.notes.push_back(*std::move(note));
  }
  if (!answer.note.empty()) error.notes.push_back(answer.note);
  return error;
}

// Rejects a plan that needs more host memory than the request allows.
Result<Done> CheckHostMemory(const SolverInfo& info, const Plan& plan) {
  const std::optional<Bytes>& budget = plan.request.host_budget;
  if (!budget || !plan.figures.offload || plan.figures.offload->host_peak <= *budget) return Done{};
  const Bytes needed = plan.figures.offload->host_peak;
  return Error{ErrorCode::kInfeasible,
               fmt::format("infeasible: {}'s plan needs {} ({} bytes) of host memory; the limit is "
                           "{} ({} bytes)",
                           info.name, HumanBytes(needed), needed.count(), HumanBytes(*budget),
                           budget->count()),
               {},
               {"try", {{"host_memory", std::to_string(needed.count())}}}};
}

Result<Plan> SolveAndCheck(const SolverInfo& info, const PlanProblem& problem,
                           const SolveLimits& limits) {
  CKPLAN_ASSIGN_OR_RETURN(const Answer answer, info.name == kBestAlgorithm
                                                   ? SolveByBest(problem, limits)
                                                   : SolveWith(info, problem, limits));
  if (problem.request.decisions) {
    CKPLAN_RETURN_IF_ERROR(
        CheckDecisions(BrokenConstraints(problem.step, problem.request, answer.schedule)));
  }
  // Keep a plan that `best` found in time, however long assembling it takes.
  std::optional<StopsSuspended> whole;
  if (info.name == kBestAlgorithm) whole.emplace();
  Plan plan = PlanOf(problem, info, answer);
  if (!problem.Fits(plan.figures.peak, plan.figures.overhead)) {
    return RefusalError(problem, info, answer, plan);
  }
  CKPLAN_RETURN_IF_ERROR(CheckHostMemory(info, plan));
  return CheckFinishedPlan(problem, std::move(plan));
}

// Calls `use` with the request's problem for the step. A stop or a lack of memory becomes an error.
template <typename Use>
auto WithProblem(const SolverInfo& info, const TrainingStep& step, const PlanRequest& request,
                 const SolveLimits& limits, Use use)
    -> decltype(use(std::declval<const PlanProblem&>())) {
  CKPLAN_RETURN_IF_ERROR(CheckRequest(info, step, request));
  return CatchOutOfMemory(info, limits, [&] {
    return CatchStop([&]() -> decltype(use(std::declval<const PlanProblem&>())) {
      CKPLAN_ASSIGN_OR_RETURN(const ConstrainedStep constrained,
                              ConstrainedStep::Create(step, request));
      PlanProblem problem = ProblemOf(constrained.step(), request);
      problem.is_recomputed = constrained.is_recomputed();
      problem.rules = constrained.rules();
      std::optional<OffloadTerms> terms;
      if (request.offload) {
        CKPLAN_ASSIGN_OR_RETURN(terms, OffloadTermsOf(step, request));
        problem.offload = &*terms;
      }
      return use(problem);
    });
  });
}

}  // namespace

PlanProblem ProblemOf(const TrainingStep& step, const PlanRequest& request) {
  return {step.WithLink(request.offload ? &*request.offload : nullptr),
          request,
          BudgetInBytes(step, request),
          PeakBudgetOf(request).kind == Budget::Kind::kMin,
          MaxAddedTime(step, request),
          RequestedBalance(step, request)};
}

Result<Plan> MakePlanBy(const SolverInfo& info, const TrainingStep& step,
                        const PlanRequest& request, const SolveLimits& limits) {
  return WithProblem(info, step, request, limits, [&](const PlanProblem& problem) {
    return SolveAndCheck(info, problem, limits);
  });
}

Result<PlanWithin> FindBestPlanWithin(const TrainingStep& step, const PlanRequest& request,
                                      BestUntil* search, SearchDepth depth, PlanDetail detail) {
  const SolverInfo& best = *FindSolver(kBestAlgorithm).value();
  return WithProblem(
      best, step, request, search->limits(), [&](const PlanProblem& problem) -> Result<PlanWithin> {
        CKPLAN_ASSIGN_OR_RETURN(const std::optional<Answer> answer, search->Solve(problem, depth));
        PlanWithin found;
        if (!answer) return found;
        Plan plan = PlanOf(problem, best, *answer, detail);
        found.least_found = plan.figures.overhead;
        if (plan.figures.overhead > search->enough()) return found;
        found.plan = detail == PlanDetail::kFigures ? std::move(plan)
                                                    : CheckFinishedPlan(problem, std::move(plan));
        return found;
      });
}

Result<std::vector<CurvePoint>> PointsByBudgets(const TrainingStep& step,
                                                const PlanRequest& request,
                                                const SolveLimits& limits) {
  CKPLAN_ASSIGN_OR_RETURN(const SolverInfo* info, FindSolver(request.algorithm));
  using Points = std::vector<CurvePoint>;
  return WithProblem(
      *info, step, request, limits, [&](const PlanProblem& problem) -> Result<Points> {
        if (info->name == kBestAlgorithm) return TraceCurveByBest(problem, limits);
        const StopScope scope(limits.stop);
        PollStop();
        CKPLAN_ASSIGN_OR_RETURN(const std::vector<Answer> answers,
                                SolveForBudgets(*info, problem, limits));
        Points points;
        for (const Answer& answer : answers) {
          const Plan plan = CheckFinishedPlan(problem, PlanOf(problem, *info, answer));
          points.push_back({plan.figures.peak, plan.figures.overhead});
        }
        return points;
      });
}

}  // namespace ckplan
