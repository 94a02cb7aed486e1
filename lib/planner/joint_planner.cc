#include "lib/planner/joint_planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/algorithms/checkmate/checkmate.h"
#include "lib/algorithms/dtr/dtr.h"
#include "lib/algorithms/given/given.h"
#include "lib/algorithms/given/given_runs.h"
#include "lib/algorithms/torch/torch_budget.h"
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
#include "lib/planner/constants_shortage.h"
#include "lib/planner/joint_best.h"
#include "lib/planner/joint_problem.h"
#include "lib/planner/joint_runs.h"
#include "lib/planner/obedience.h"
#include "lib/planner/peak_budget.h"
#include "lib/planner/registry.h"

namespace ckplan {
namespace {

struct JointSolver {
  std::string_view name;  // As in the registry.
  Result<JointOutcome> (*solve)(const JointProblem& problem, const SolveLimits& limits) = nullptr;
};

Result<JointOutcome> SolveKeepAll(const JointProblem& problem, const SolveLimits&) {
  JointOutcome outcome{problem.Obeying(OwnOrder(problem.graph)), false, "", std::nullopt};
  const bool is_changed = outcome.runs.size() > problem.graph.ops().size();
  outcome.is_optimal = !is_changed && LeastOverhead(problem.graph) == Cost(0);
  outcome.guarantee = outcome.is_optimal ? "no plan has less overhead: nothing runs twice"
                                         : "nothing runs twice, and nothing is left out";
  if (is_changed) outcome.guarantee += kChangedToObey;
  return outcome;
}

Result<JointOutcome> SolveGiven(const JointProblem& problem, const SolveLimits&) {
  const std::optional<Decisions>& decisions = problem.request.decisions;
  CKPLAN_ASSIGN_OR_RETURN(std::vector<OpId> runs,
                          RunsOfDecisions(problem.graph, decisions ? &*decisions : nullptr));
  CKPLAN_RETURN_IF_ERROR(CheckDecided(BrokenConstraints(
      problem.graph, problem.request, AssembleJointPlan(problem.graph, runs).schedule)));
  return JointOutcome{std::move(runs), false, std::string(kGuaranteeOfDecisions), std::nullopt};
}

// The first is the one that refusals of other algorithms name.
constexpr std::array kJointSolvers = {
    JointSolver{kBestAlgorithm, SolveByBest},
    JointSolver{"checkmate", SolveByRuns<PrepareCheckmateRuns>},
    JointSolver{"dtr", SolveByRuns<PrepareDtrRuns>},
    JointSolver{kGivenAlgorithm, SolveGiven},
    JointSolver{"keep-all", SolveKeepAll},
    JointSolver{"torch-budget", SolveByRuns<PrepareTorchBudgetRuns>},
};

Error ForForwardGraphs(std::string_view what, Remedy remedy) {
  return Error{ErrorCode::kUsage,
               fmt::format("{} for forward graphs; this is a joint graph, whose plans run "
                           "operations in any order",
                           what),
               {},
               std::move(remedy)};
}

// What of the request has no meaning here.
Result<Done> CheckRequest(std::string_view algorithm, const PlanRequest& request) {
  const auto leave_out = [](std::string_view field) {
    return Remedy{"leave out", {{std::string(field), ""}}};
  };
  if (request.objective == Objective::kMemory) {
    return ForForwardGraphs("the objective \"memory\" is", leave_out("objective"));
  }
  if (request.granularity == Granularity::kLayer) {
    return ForForwardGraphs("layers are", leave_out("granularity"));
  }
  if (request.paper_budget.is_given()) {
    return ForForwardGraphs("a paper budget is", leave_out("paper_budget"));
  }
  if (request.setting) return ForForwardGraphs("knobs are", leave_out("setting"));
  if (request.decisions && algorithm != kGivenAlgorithm) {
    return Error{ErrorCode::kUsage,
                 fmt::format("{} decides itself; decisions are for the algorithm given", algorithm),
                 {},
                 {"add", {{"algorithm", std::string(kGivenAlgorithm)}}}};
  }
  if (!request.uses_liveness) {
    return ForForwardGraphs("frees without liveness are", leave_out("liveness"));
  }
  if (!request.budget.is_given() || !request.total_budget.is_given()) return Done{};
  return MakeError(ErrorCode::kUsage, "a plan is made for one budget, but several are given");
}

Result<const JointSolver*> FindJointSolver(const PlanRequest& request) {
  CKPLAN_ASSIGN_OR_RETURN(const SolverInfo* info, FindSolver(request.algorithm));
  for (const JointSolver& solver : kJointSolvers) {
    if (solver.name == info->name) return &solver;
  }
  Error error = ForForwardGraphs(fmt::format("{} is", info->name),
                                 {"use", {{"algorithm", std::string(kJointSolvers.front().name)}}});
  if (request.gradients == ParameterGradients::kArriving) {
    error.notes.push_back(
        "a step whose gradients of parameters arrive is planned as a joint graph");
  }
  return error;
}

// The budget as bytes of the peak alone; none if the request states no amount.
std::optional<Bytes> BudgetInBytes(const JointGraph& graph, const PlanRequest& request) {
  const bool is_share = PeakBudgetOf(request).kind == Budget::Kind::kPercent;
  return BudgetInBytes(request, is_share ? OwnOrderPeak(graph) : Bytes(0),
                       ConstantsInBudget(graph, request));
}

Error Infeasible(const JointProblem& problem, std::string_view algorithm, const Plan& least) {
  const Bytes constants = ConstantsInBudget(problem.graph, problem.request);
  const Bytes budget = *problem.budget + constants;
  const Bytes needed = least.figures.peak + constants;
  const std::vector<Step>& steps = least.schedule.steps;
  const std::string where =
      steps.empty() ? ""
                    : fmt::format(", needed at the run of \"{}\"",
                                  ShownName(problem.graph,
                                            steps[static_cast<size_t>(least.peak->step)].node()));
  return Error{
      ErrorCode::kInfeasible,
      fmt::format("infeasible: {} finds no plan within {} ({} bytes); the least it reaches is {} "
                  "({} bytes{})",
                  algorithm, HumanBytes(budget), budget.count(), HumanBytes(needed), needed.count(),
                  where),
      {},
      {"try",
       {{problem.request.total_budget.is_given() ? "total_budget" : "budget",
         std::to_string(needed.count())}}}};
}

// The request as plans hold it: the algorithm by its own name, one budget, in bytes.
PlanRequest Settled(const JointProblem& problem, std::string_view algorithm, Bytes peak) {
  PlanRequest settled = problem.request;
  settled.algorithm = algorithm;
  settled.objective = Objective::kTime;
  settled.order = StepOrder::kModel;  // Runs of a joint graph may come in any order as it is.
  settled.budget = settled.total_budget = {};
  if (problem.wants_least_peak) settled.budget = Budget::Of(peak);
  if (problem.budget) settled.budget = Budget::Of(*problem.budget);
  return settled;
}

// Of what the algorithm returned, whether or not it fits the budget.
Plan PlanOf(const JointProblem& problem, std::string_view algorithm, const JointOutcome& outcome) {
  Plan plan = AssembleJointPlan(problem.graph, outcome.runs);
  plan.request = Settled(problem, algorithm, plan.figures.peak);
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

Result<Plan> SolveAndCheck(const JointSolver& solver, const JointProblem& problem,
                           const SolveLimits& limits) {
  const StopScope scope(limits.stop);
  PollStop();
  CKPLAN_ASSIGN_OR_RETURN(const JointOutcome outcome, solver.solve(problem, limits));
  // What a search has found in time is told whole.
  std::optional<StopsSuspended> whole;
  const bool is_cut_short = outcome.guarantee.starts_with(kStoppedEarly);
  if (solver.name == kBestAlgorithm || is_cut_short) whole.emplace();
  Plan plan = PlanOf(problem, solver.name, outcome);
  if (problem.budget && plan.figures.peak > *problem.budget) {
    Error error = Infeasible(problem, solver.name, plan);
    const auto note =
        ConstantsNote(plan.figures.constants, plan.figures.optimizer_state, problem.request);
    if (note) error.notes.push_back(*note);
    if (!outcome.note.empty()) error.notes.push_back(outcome.note);
    CKPLAN_ASSIGN_OR_RETURN(const SolverInfo* info, FindSolver(solver.name));
    if (MayReachLess(*info, outcome.is_optimal)) error.notes.emplace_back(kMayReachLess);
    return error;
  }
  return Checked(problem, std::move(plan));
}

}  // namespace

Result<Plan> MakeJointPlan(const JointGraph& graph, const PlanRequest& request,
                           const SolveLimits& limits) {
  CKPLAN_ASSIGN_OR_RETURN(const JointSolver* solver, FindJointSolver(request));
  CKPLAN_RETURN_IF_ERROR(CheckRequest(solver->name, request));
  return UnlessStopped([&]() -> Result<Plan> {
    CKPLAN_ASSIGN_OR_RETURN(const ConstrainedGraph constrained,
                            ConstrainedGraph::Create(graph, request));
    const JointProblem problem{
        constrained.graph(graph),      request,
        BudgetInBytes(graph, request), PeakBudgetOf(request).kind == Budget::Kind::kMin,
        constrained.is_recomputed(),   constrained.rules()};
    return SolveAndCheck(*solver, problem, limits);
  });
}

Result<PlanWithin> FindJointPlanWithin(const JointGraph& graph, const PlanRequest& request,
                                       Cost enough, const SolveLimits& limits) {
  CKPLAN_RETURN_IF_ERROR(CheckRequest(kBestAlgorithm, request));
  return UnlessStopped([&]() -> Result<PlanWithin> {
    const StopScope scope(limits.stop);
    CKPLAN_ASSIGN_OR_RETURN(const ConstrainedGraph constrained,
                            ConstrainedGraph::Create(graph, request));
    const JointProblem problem{constrained.graph(graph),      request,
                               BudgetInBytes(graph, request), false,
                               constrained.is_recomputed(),   constrained.rules()};
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
                                                const SolveLimits& limits) {
  CKPLAN_RETURN_IF_ERROR(CheckRequest(kBestAlgorithm, request));
  return UnlessStopped([&]() -> Result<std::vector<CurvePoint>> {
    const StopScope scope(limits.stop);
    CKPLAN_ASSIGN_OR_RETURN(const ConstrainedGraph constrained,
                            ConstrainedGraph::Create(graph, request));
    const JointProblem problem{
        constrained.graph(graph), request, std::nullopt, false, constrained.is_recomputed(),
        constrained.rules()};
    return TraceCurveByBest(problem, limits);
  });
}

bool PlansJointGraphs(std::string_view algorithm) {
  return std::any_of(kJointSolvers.begin(), kJointSolvers.end(),
                     [&](const JointSolver& solver) { return solver.name == algorithm; });
}

}  // namespace ckplan
