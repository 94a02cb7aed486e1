#include "lib/planner/joint_planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/algorithms/given/given.h"
#include "lib/algorithms/given/given_runs.h"
#include "lib/base/human_bytes.h"
#include "lib/base/stop.h"
#include "lib/joint/simulate_runs.h"
#include "lib/plan/assemble_joint.h"
#include "lib/plan/check_constraints.h"
#include "lib/plan/check_runs.h"
#include "lib/plan/constraints.h"
#include "lib/plan/node_name.h"
#include "lib/plan/run_solver.h"
#include "lib/planner/best_planner.h"
#include "lib/planner/check_request.h"
#include "lib/planner/constants_shortage.h"
#include "lib/planner/joint_best.h"
#include "lib/planner/joint_problem.h"
#include "lib/planner/joint_runs.h"
#include "lib/planner/obedience.h"
#include "lib/planner/peak_budget.h"
#include "lib/planner/registry.h"
#include "lib/planner/strategy_runs.h"

namespace ckplan {
namespace {

Result<JointOutcome> SolveGiven(const JointProblem& problem) {
  const std::optional<Decisions>& decisions = problem.request.decisions;
  CKPLAN_ASSIGN_OR_RETURN(std::vector<OpId> runs,
                          RunsOfDecisions(problem.graph, decisions ? &*decisions : nullptr));
  CKPLAN_RETURN_IF_ERROR(CheckDecided(BrokenConstraints(
      problem.graph, problem.request, AssembleJointPlan(problem.graph, runs).schedule)));
  return JointOutcome{std::move(runs), false, std::string(kGuaranteeOfDecisions), std::nullopt};
}

Error ForForwardGraphs(std::string_view what, Remedy remedy) {
  return Error{ErrorCode::kUsage,
               fmt::format("{} for forward graphs; this is a joint graph, whose plans run "
                           "operations in any order",
                           what),
               {},
               std::move(remedy)};
}

Remedy LeaveOut(std::string_view field) { return {"leave out", {{std::string(field), ""}}}; }

// Refuses what is asked of decisions on the nodes of a forward graph, which nothing makes here.
Result<Done> CheckForwardFields(const PlanRequest& request) {
  if (request.objective == Objective::kMemory) {
    return ForForwardGraphs("the objective \"memory\" is", LeaveOut("objective"));
  }
  if (request.granularity == Granularity::kLayer) {
    return ForForwardGraphs("layers are", LeaveOut("granularity"));
  }
  if (request.paper_budget.is_given()) {
    return ForForwardGraphs("a paper budget is", LeaveOut("paper_budget"));
  }
  if (request.setting) return ForForwardGraphs("knobs are", LeaveOut("setting"));
  return Done{};
}

// Refuses what an algorithm that decides on nodes does not take.
Result<Done> CheckForNodes(const SolverInfo& info, const ForwardView& forward,
                           const PlanRequest& request) {
  CKPLAN_RETURN_IF_ERROR(CheckObjective(info, request));
  CKPLAN_RETURN_IF_ERROR(CheckSetting(info, request));
  CKPLAN_RETURN_IF_ERROR(CheckTakesOrder(info, request));
  return CheckConstraints(forward.graph, request);
}

Result<Done> CheckRequest(const SolverInfo& info, const PlanRequest& request,
                          const std::optional<ForwardView>& forward) {
  CKPLAN_RETURN_IF_ERROR(DecidesOnRuns(info) ? CheckForwardFields(request)
                                             : CheckForNodes(info, *forward, request));
  CKPLAN_RETURN_IF_ERROR(CheckDecider(info, request));
  if (!request.uses_liveness) {
    return ForForwardGraphs("frees without liveness are", LeaveOut("liveness"));
  }
  return CheckOneBudget(request);
}

// kUsage if the algorithm decides on the nodes of a forward graph, and there is none.
Result<const SolverInfo*> FindJointSolver(const PlanRequest& request,
                                          const std::optional<ForwardView>& forward) {
  CKPLAN_ASSIGN_OR_RETURN(const SolverInfo* info, FindSolver(request.algorithm));
  if (DecidesOnRuns(*info) || (forward && info->prepare != nullptr)) return info;
  Error error = ForForwardGraphs(fmt::format("{} is", info->name),
                                 {"use", {{"algorithm", std::string(kBestAlgorithm)}}});
  if (request.gradients == ParameterGradients::kArriving) {
    error.notes.push_back(
        "a step whose gradients of parameters arrive is planned as a joint graph");
  }
  return error;
}

// What the algorithms are asked, as long as `constrained` and the others live.
JointProblem ProblemOf(const JointGraph& graph, const std::optional<ForwardView>& forward,
                       const PlanRequest& request, const ConstrainedGraph& constrained) {
  JointProblem problem{constrained.graph(graph), request};
  problem.is_recomputed = constrained.is_recomputed();
  problem.rules = constrained.rules();
  problem.forward = forward ? &*forward : nullptr;
  return problem;
}

// The budget as bytes of the peak alone; none if the request states no amount.
std::optional<Bytes> BudgetInBytes(const JointGraph& graph, const PlanRequest& request) {
  const bool is_share = PeakBudgetOf(request).kind == Budget::Kind::kPercent;
  return BudgetInBytes(request, is_share ? OwnOrderPeak(graph) : Bytes(0),
                       ConstantsInBudget(graph, request));
}

// The request as plans hold it: the algorithm by its own name, one budget, in bytes.
PlanRequest Settled(const JointProblem& problem, std::string_view algorithm,
                    const JointOutcome& outcome, Bytes peak) {
  PlanRequest settled = problem.request;
  settled.algorithm = algorithm;
  settled.objective = outcome.objective;
  if (settled.paper_budget.is_given() && outcome.paper && outcome.paper->budget) {
    settled.paper_budget = Budget::Of(*outcome.paper->budget);
  }
  settled.order = StepOrder::kModel;  // Runs of a joint graph may come in any order as it is.
  settled.budget = settled.total_budget = {};
  if (problem.wants_least_peak) settled.budget = Budget::Of(peak);
  if (problem.budget) settled.budget = Budget::Of(*problem.budget);
  return settled;
}

// Makes a plan of what the algorithm returned, whether or not it fits the budget.
Plan PlanOf(const JointProblem& problem, std::string_view algorithm, const JointOutcome& outcome) {
  Plan plan = AssembleJointPlan(problem.graph, outcome.runs);
  plan.request = Settled(problem, algorithm, outcome, plan.figures.peak);
  if (outcome.paper) plan.figures.paper = *outcome.paper;
  plan.figures.setting = outcome.setting;
  plan.figures.is_optimal =
      outcome.is_optimal && (!problem.wants_least_peak || algorithm == kBestAlgorithm);
  plan.figures.guarantee = outcome.guarantee;
  if (outcome.lower_bound) plan.figures.lower_bound_cost = outcome.lower_bound;
  plan.figures.curve = outcome.curve;
  if (outcome.certificate) AddCertificate(*outcome.certificate, &plan.figures);
  plan.figures.optimizer_state =
      OptimizerState(problem.request.optimizer, ParameterGradientBytes(problem.graph));
  return plan;
}

Plan Checked(const JointProblem& problem, Plan plan) {
  const std::vector<std::string> faults = CheckJointPlan(problem.graph, plan);
  CKPLAN_CHECK(faults.empty(), faults.front());
  return plan;
}

Result<JointOutcome> Solve(const SolverInfo& info, const JointProblem& problem,
                           const SolveLimits& limits) {
  if (info.name == kBestAlgorithm) return SolveByBest(problem, limits);
  if (info.name == kGivenAlgorithm) return SolveGiven(problem);
  if (info.prepare_runs != nullptr) return SolveByRuns(problem, limits, info.prepare_runs);
  return SolveByStrategies(info, problem, limits);
}

Result<Plan> SolveAndCheck(const SolverInfo& info, const JointProblem& problem,
                           const SolveLimits& limits) {
  const StopScope scope(limits.stop);
  PollStop();
  CKPLAN_ASSIGN_OR_RETURN(const JointOutcome outcome, Solve(info, problem, limits));
  // What a search has found in time is reported to the end.
  std::optional<StopsSuspended> whole;
  const bool is_cut_short = outcome.guarantee.starts_with(kStoppedEarly);
  if (info.name == kBestAlgorithm || is_cut_short) whole.emplace();
  Plan plan = PlanOf(problem, info.name, outcome);
  if (problem.budget && plan.figures.peak > *problem.budget) {
    Error error = JointInfeasible(problem.graph, problem.request, info.name, plan);
    const auto note =
        ConstantsNote(plan.figures.constants, plan.figures.optimizer_state, problem.request);
    if (note) error.notes.push_back(*note);
    if (!outcome.note.empty()) error.notes.push_back(outcome.note);
    if (MayReachLess(info, outcome.is_optimal)) error.notes.emplace_back(kMayReachLess);
    return error;
  }
  return Checked(problem, std::move(plan));
}

}  // namespace

Error JointInfeasible(const JointGraph& graph, const PlanRequest& request, std::string_view who,
                      const Plan& least) {
  const std::vector<Step>& steps = least.schedule.steps;
  const std::string where =
      steps.empty()
          ? ""
          : fmt::format("the run of \"{}\"",
                        ShownName(graph, steps[static_cast<size_t>(least.peak->step)].node()));
  return Infeasible(request, who, *BudgetInBytes(graph, request), least.figures.peak,
                    ConstantsInBudget(graph, request), where);
}

Result<Plan> MakeJointPlan(const JointGraph& graph, const PlanRequest& request,
                           const SolveLimits& limits, const std::optional<ForwardView>& forward) {
  CKPLAN_ASSIGN_OR_RETURN(const SolverInfo* info, FindJointSolver(request, forward));
  CKPLAN_RETURN_IF_ERROR(CheckRequest(*info, request, forward));
  return UnlessStopped([&]() -> Result<Plan> {
    CKPLAN_ASSIGN_OR_RETURN(const ConstrainedGraph constrained,
                            ConstrainedGraph::Create(graph, request));
    JointProblem problem = ProblemOf(graph, forward, request, constrained);
    problem.budget = BudgetInBytes(graph, request);
    problem.wants_least_peak = PeakBudgetOf(request).kind == Budget::Kind::kMin;
    return SolveAndCheck(*info, problem, limits);
  });
}

Result<PlanWithin> FindJointPlanWithin(const JointGraph& graph, const PlanRequest& request,
                                       Cost enough, const SolveLimits& limits,
                                       const std::optional<ForwardView>& forward) {
  CKPLAN_RETURN_IF_ERROR(CheckRequest(*FindSolver(kBestAlgorithm).value(), request, forward));
  return UnlessStopped([&]() -> Result<PlanWithin> {
    const StopScope scope(limits.stop);
    CKPLAN_ASSIGN_OR_RETURN(const ConstrainedGraph constrained,
                            ConstrainedGraph::Create(graph, request));
    JointProblem problem = ProblemOf(graph, forward, request, constrained);
    problem.budget = BudgetInBytes(graph, request);
    CKPLAN_ASSIGN_OR_RETURN(const std::optional<JointOutcome> outcome,
                            SolveByBestUntil(problem, enough, limits));
    PlanWithin found;
    if (!outcome) return found;
    Plan plan = PlanOf(problem, kBestAlgorithm, *outcome);
    found.least_found = plan.figures.overhead;
    if (plan.figures.overhead <= enough) found.plan = Checked(problem, std::move(plan));
    return found;
  });
}

Result<std::vector<CurvePoint>> TraceJointCurve(const JointGraph& graph, const PlanRequest& request,
                                                const SolveLimits& limits,
                                                const std::optional<ForwardView>& forward) {
  CKPLAN_RETURN_IF_ERROR(CheckRequest(*FindSolver(kBestAlgorithm).value(), request, forward));
  return UnlessStopped([&]() -> Result<std::vector<CurvePoint>> {
    const StopScope scope(limits.stop);
    CKPLAN_ASSIGN_OR_RETURN(const ConstrainedGraph constrained,
                            ConstrainedGraph::Create(graph, request));
    return TraceCurveByBest(ProblemOf(graph, forward, request, constrained), limits);
  });
}

}  // namespace ckplan
