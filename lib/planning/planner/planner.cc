#include "lib/planning/planner/planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "lib/base/stop.h"
#include "lib/base/text.h"
#include "lib/planning/plan/assemble.h"
#include "lib/planning/plan/check.h"
#include "lib/planning/plan/check_constraints.h"
#include "lib/planning/plan/offload_terms.h"
#include "lib/planning/plan/optimizer_state.h"
#include "lib/planning/plan/request_fields.h"
#include "lib/planning/planner/apply_constraints.h"
#include "lib/planning/planner/best_planner.h"
#include "lib/planning/planner/check_request.h"
#include "lib/planning/planner/constants_shortage.h"
#include "lib/planning/planner/guarantees.h"
#include "lib/planning/planner/memory_attempts.h"
#include "lib/planning/planner/out_of_memory.h"
#include "lib/planning/planner/peak_budget.h"
#include "lib/planning/planner/plan_problem.h"
#include "lib/planning/planner/solve.h"
#include "lib/planning/planner/strategy_search.h"
#include "lib/problem/schedule/training_step.h"

namespace ckplan {
namespace {

// Returns the request as plans hold it: with the algorithm's main name, and one budget in bytes.
PlanRequest Settled(const PlanProblem& problem, const SolverInfo& info, const Answer& answer,
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
  // The runs of a joint graph may come in any order anyway.
  if (problem.step.is_joint()) settled.order = StepOrder::kModel;
  settled.budget = settled.total_budget = settled.memory = settled.added_time = {};
  settled.reserve.reset();
  if (problem.seeks_peak()) settled.budget = Budget::Of(peak);
  if (problem.budget) settled.budget = Budget::Of(*problem.budget);
  return settled;
}

Arena PlaceNowhere(const Timeline& timeline) {
  return {Bytes(0), std::vector<Bytes>(timeline.buffers.size())};
}

// Turns the answer into a plan, whether or not it fits the budget.
Plan PlanOf(const PlanProblem& problem, const SolverInfo& info, const Answer& answer,
            PlanDetail detail = PlanDetail::kWhole) {
  const bool is_tight = problem.step.is_joint() || info.name == kBestAlgorithm;
  const auto place = detail == PlanDetail::kFigures ? PlaceNowhere
                     : is_tight                     ? PlaceTightly
                                                    : PlaceBuffers;
  Plan plan = AssemblePlan(problem.step, answer.schedule, answer.segment_of, place);
  plan.request = Settled(problem, info, answer, plan.figures.peak);
  if (answer.paper) plan.figures.paper = *answer.paper;
  plan.figures.setting = answer.setting;
  plan.figures.is_optimal =
      answer.is_optimal && (!problem.seeks_peak() || info.name == kBestAlgorithm);
  plan.figures.guarantee = answer.guarantee;
  if (answer.lower_bound) plan.figures.lower_bound_cost = answer.lower_bound;
  if (answer.certificate) AddCertificate(*answer.certificate, &plan.figures);
  // Only a plan for no limit at all shows what it was chosen from.
  if (!problem.has_budget()) plan.figures.curve = answer.curve;
  plan.figures.optimizer_state = OptimizerState(problem.request, problem.step.optimized());
  return plan;
}

Plan Checked(const PlanProblem& problem, Plan plan) {
  const std::vector<std::string> faults = CheckPlan(problem.step, plan);
  CKPLAN_CHECK(faults.empty(), faults.front());
  return plan;
}

Error Refusal(const PlanProblem& problem, const SolverInfo& info, const Answer& answer,
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

// Refuses a plan that needs more of the host than the request allows.
Result<Done> CheckHostMemory(const SolverInfo& info, const Plan& plan) {
  const std::optional<Bytes>& budget = plan.request.host_budget;
  if (!budget || !plan.figures.offload || plan.figures.offload->host_peak <= *budget) return Done{};
  const Bytes needed = plan.figures.offload->host_peak;
  return Error{
      ErrorCode::kInfeasible,
      fmt::format("infeasible: the plan by {} needs {} ({} bytes) on the host, and may use "
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
                                                   : SolveByPaper(info, problem, limits));
  if (problem.request.decisions) {
    CKPLAN_RETURN_IF_ERROR(
        CheckDecided(BrokenConstraints(problem.step, problem.request, answer.schedule)));
  }
  // A plan that `best` has found in time is returned, however long it takes to assemble.
  std::optional<StopsSuspended> whole;
  if (info.name == kBestAlgorithm) whole.emplace();
  Plan plan = PlanOf(problem, info, answer);
  if (!problem.Fits(plan.figures.peak, plan.figures.overhead)) {
    return Refusal(problem, info, answer, plan);
  }
  CKPLAN_RETURN_IF_ERROR(CheckHostMemory(info, plan));
  return Checked(problem, std::move(plan));
}

// Returns the problem that the request poses for the step, without constraints.
PlanProblem ProblemOf(const TrainingStep& step, const PlanRequest& request) {
  return {step.WithLink(request.offload ? &*request.offload : nullptr),
          request,
          BudgetInBytes(step, request),
          PeakBudgetOf(request).kind == Budget::Kind::kMin,
          MostAddedBy(step, request),
          BalanceBy(step, request)};
}

// Calls `use` with the problem that the request poses for the step. A stop or a lack of memory
// becomes an error.
template <typename Use>
auto WithProblem(const SolverInfo& info, const TrainingStep& step, const PlanRequest& request,
                 const SolveLimits& limits, Use use)
    -> decltype(use(std::declval<const PlanProblem&>())) {
  CKPLAN_RETURN_IF_ERROR(CheckRequest(info, step, request));
  return UnlessOutOfMemory(info, limits, [&] {
    return UnlessStopped([&]() -> decltype(use(std::declval<const PlanProblem&>())) {
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

Result<Plan> MakePlanBy(const SolverInfo& info, const TrainingStep& step,
                        const PlanRequest& request, const SolveLimits& limits) {
  return WithProblem(info, step, request, limits, [&](const PlanProblem& problem) {
    return SolveAndCheck(info, problem, limits);
  });
}

// Returns whether plan a is better than plan b; both answer the problem. Names break ties.
bool IsBetter(const Plan& a, const Plan& b, const PlanProblem& problem) {
  const CurvePoint point_a{a.figures.peak, a.figures.overhead};
  const CurvePoint point_b{b.figures.peak, b.figures.overhead};
  if (point_a == point_b) return a.request.algorithm < b.request.algorithm;
  return problem.IsBetter(point_a, point_b);
}

// Algorithms that answer at once come first, so that a time limit cuts short only the searches.
std::vector<const SolverInfo*> FastFirst(const PlanRequest& request) {
  std::vector<const SolverInfo*> solvers;
  for (const SolverInfo& info : AllSolvers()) solvers.push_back(&info);
  if (request.offload) {
    for (const SolverInfo& info : OffloadSolvers()) solvers.push_back(&info);
  }
  std::stable_partition(solvers.begin(), solvers.end(),
                        [](const SolverInfo* info) { return !IsSlow(*info); });
  return solvers;
}

// Returns how well an error explains that no algorithm has a plan: the error of the highest weight
// is shown. The weight is lowest if an algorithm merely does not support the request or the graph.
int WeightOf(ErrorCode code) {
  if (code == ErrorCode::kTimeout) return 2;
  return code == ErrorCode::kInfeasible ? 1 : 0;
}

// Returns the best plan by any algorithm, or the error that explains why there is none.
Result<Plan> BestOfAll(const TrainingStep& step, const PlanRequest& request,
                       const SolveLimits& limits, Shortage* shortage) {
  const PlanProblem problem = ProblemOf(step, request);
  std::optional<Plan> best;
  std::optional<Error> failure;
  for (const SolverInfo* info : FastFirst(request)) {
    Result<Plan> plan = MakePlanBy(*info, step, request, limits);
    if (plan.ok()) {
      if (!best || IsBetter(*plan, *best, problem)) best = std::move(plan).value();
      continue;
    }
    const ErrorCode code = plan.error().code;
    if (code == ErrorCode::kTimeout) shortage->of_time.emplace_back(info->name);
    if (IsOutOfMemory(plan.error())) shortage->of_memory.emplace_back(info->name);
    if (!failure || WeightOf(code) > WeightOf(failure->code)) failure = std::move(plan).error();
  }
  if (best) return *std::move(best);
  return *std::move(failure);
}

Result<Plan> MakeAutoPlan(const SolverInfo& info, const TrainingStep& step,
                          const PlanRequest& request, const SolveLimits& limits,
                          Shortage* shortage) {
  CKPLAN_RETURN_IF_ERROR(CheckRequest(info, step, request));
  if (!PeakBudgetOf(request).is_given() && !request.added_time.is_given()) {
    return Error{
        ErrorCode::kUsage,
        "auto takes the best plan within a limit on the peak or on the added time, and none "
        "is given",
        {},
        {"add", {{"budget", "60%"}}}};
  }
  Result<Plan> best = BestOfAll(step, request, limits, shortage);
  const bool is_refused = !best.ok() && best.error().code == ErrorCode::kInfeasible;
  if (!is_refused || request.added_time.is_given()) return best;
  PlanRequest least = request;
  PeakBudgetIn(&least).kind = Budget::Kind::kMin;
  Shortage unreported;
  CKPLAN_ASSIGN_OR_RETURN(const Plan plan, BestOfAll(step, least, limits, &unreported));
  const PlanProblem problem{step, request, BudgetInBytes(step, request)};
  return Infeasible(problem, fmt::format("auto, by {} at best,", plan.request.algorithm), plan);
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
  // Checking the request and explaining a refusal walk over the graph as well, so they can be
  // stopped too.
  CKPLAN_ASSIGN_OR_RETURN(
      Plan plan, UnlessStopped([&] { return MakePlan(source.step(), request, limits, shortage); }));
  for (const RequestField& field : RequestFields()) {
    if (field.part != RequestField::Part::kPlan) CopyField(field, source.request, &plan.request);
  }
  plan.model = source.identity;
  return plan;
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
        found.plan =
            detail == PlanDetail::kFigures ? std::move(plan) : Checked(problem, std::move(plan));
        return found;
      });
}

Result<std::vector<CurvePoint>> PointsByBudgets(const TrainingStep& step,
                                                const PlanRequest& request,
                                                const SolveLimits& limits) {
  CKPLAN_ASSIGN_OR_RETURN(const SolverInfo* info, FindSolver(request.algorithm));
  using Points = std::vector<CurvePoint>;
  return WithProblem(*info, step, request, limits,
                     [&](const PlanProblem& problem) -> Result<Points> {
                       if (info->name == kBestAlgorithm) return TraceCurveByBest(problem, limits);
                       const StopScope scope(limits.stop);
                       PollStop();
                       CKPLAN_ASSIGN_OR_RETURN(const std::vector<Answer> answers,
                                               SolveForBudgets(*info, problem, limits));
                       Points points;
                       for (const Answer& answer : answers) {
                         const Plan plan = Checked(problem, PlanOf(problem, *info, answer));
                         points.push_back({plan.figures.peak, plan.figures.overhead});
                       }
                       return points;
                     });
}

}  // namespace ckplan
