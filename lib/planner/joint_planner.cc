#include "lib/planner/joint_planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "lib/algorithms/best/best.h"
#include "lib/algorithms/best/least_peak.h"
#include "lib/algorithms/checkmate/checkmate.h"
#include "lib/algorithms/dtr/dtr.h"
#include "lib/algorithms/given/given.h"
#include "lib/algorithms/given/given_runs.h"
#include "lib/algorithms/torch/torch_budget.h"
#include "lib/base/human_bytes.h"
#include "lib/base/stop.h"
#include "lib/base/work_limit.h"
#include "lib/joint/simulate_runs.h"
#include "lib/plan/assemble_joint.h"
#include "lib/plan/check_constraints.h"
#include "lib/plan/check_runs.h"
#include "lib/plan/constraints.h"
#include "lib/plan/node_name.h"
#include "lib/plan/run_solver.h"
#include "lib/planner/best_planner.h"
#include "lib/planner/best_search.h"
#include "lib/planner/obedience.h"
#include "lib/planner/other_plans.h"
#include "lib/planner/peak_budget.h"
#include "lib/planner/registry.h"

namespace ckplan {
namespace {

// What an algorithm is asked for.
struct JointProblem {
  const JointGraph& graph;  // What must run once may not repeat in it.
  const PlanRequest& request;
  std::optional<Bytes> budget;    // On the peak, without constants. None: no limit.
  bool wants_least_peak = false;  // Of all plans that it finds; `budget` is none then.
  // Operations whose values are to be recomputed, and the rules that say so; else empty and null.
  IdVector<OpId, bool> is_recomputed = {};
  const RunRules* rules = nullptr;

  Runs Obeying(const Runs& runs) const {
    return rules == nullptr ? runs : MadeToObey(*rules, runs);
  }
};

struct JointOutcome {
  std::vector<OpId> runs;  // A plan of the graph; the caller checks whether it fits the budget.
  bool is_optimal = false;
  std::string guarantee;
  std::optional<Cost> lower_bound;  // On the overhead; none if no more than the obvious is known.
  std::optional<Certificate> certificate = {};  // Without the gaps.
  std::vector<CurvePoint> curve = {};           // Without a budget: what was found on the way.
  std::string note = {};                        // What a refusal adds, if the budget is not met.
};

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

// The setting of a knob that limits the peak; the nearest one if the budget is out of its range.
int64_t LimitFor(const JointProblem& problem, const Knob& knob) {
  return problem.budget ? std::clamp(problem.budget->count(), knob.min, knob.max) : knob.min;
}

// What the algorithm returns, changed to obey the constraints that it does not know.
Result<RunOutcome> Obeying(const JointProblem& problem, Result<RunOutcome> solved) {
  if (!solved.ok() || problem.rules == nullptr || Obeys(*problem.rules, solved->runs)) {
    return solved;
  }
  solved->runs = problem.Obeying(solved->runs);
  solved->is_optimal = false;
  solved->guarantee += kChangedToObey;
  return solved;
}

// Of a knob that limits the peak.
constexpr int64_t kLimitsTried = 16;

// The best of all settings: of least time within the budget, or of least peak.
Result<RunOutcome> SolveAtEachSetting(const JointProblem& problem, const SolveLimits& limits,
                                      PreparedRunSolver* solver) {
  const Knob knob = solver->knob();
  if (!problem.budget && !problem.wants_least_peak) {
    return Obeying(problem, solver->Solve(knob.preset, limits));
  }
  const Bytes budget = problem.budget.value_or(Bytes(0));
  RunSimulator simulator(problem.graph);
  std::optional<RunOutcome> best;
  std::tuple<Bytes, Cost, Bytes> least;  // Above the budget; time and memory.
  const bool limits_peak = knob.kind == Knob::Kind::kPeakLimit;
  const int64_t steps = limits_peak ? kLimitsTried : knob.grid_steps;
  const int64_t distance = std::max<int64_t>(1, (knob.max - knob.min) / steps);
  for (int64_t setting = knob.min; setting <= knob.max; setting += distance) {
    PollStop();
    Result<RunOutcome> solved = Obeying(problem, solver->Solve(setting, limits));
    // A limit below its least; above it there may be plans that fit once they are changed.
    const bool is_refused = !solved.ok() && solved.error().code == ErrorCode::kInfeasible;
    if (is_refused && limits_peak && setting + distance <= knob.max) continue;
    CKPLAN_ASSIGN_OR_RETURN(RunOutcome outcome, std::move(solved));
    const RunSimulation simulation = simulator.Run(outcome.runs).value();
    const Bytes above = std::max(Bytes(0), simulation.peak - budget);
    const std::tuple rank(above, simulation.cost, simulation.peak);
    if (best && rank >= least) continue;
    least = rank;
    best = std::move(outcome);
  }
  return *std::move(best);
}

// By an algorithm that plans forward graphs as well. Where nothing fits the budget, its plan of
// least peak.
template <PrepareRuns prepare>
Result<JointOutcome> SolveByRuns(const JointProblem& problem, const SolveLimits& limits) {
  CKPLAN_ASSIGN_OR_RETURN(const std::unique_ptr<PreparedRunSolver> solver,
                          prepare(problem.graph, limits));
  const Knob knob = solver->knob();
  // Plans that are changed afterwards may need more than the limit that they were made for.
  const bool limits_peak = knob.kind == Knob::Kind::kPeakLimit && problem.rules == nullptr;
  Result<RunOutcome> outcome = limits_peak ? solver->Solve(LimitFor(problem, knob), limits)
                                           : SolveAtEachSetting(problem, limits, solver.get());
  if (!outcome.ok() && outcome.error().code == ErrorCode::kInfeasible) {
    outcome = Obeying(problem, solver->Solve(knob.min, limits));
  }
  if (!outcome.ok()) return std::move(outcome).error();
  return JointOutcome{std::move(outcome->runs), outcome->is_optimal, std::move(outcome->guarantee),
                      std::nullopt};
}

// The algorithms that `best` is never worse than, in the order in which they are tried.
constexpr std::array kOthers = {SolveByRuns<PrepareDtrRuns>, SolveByRuns<PrepareTorchBudgetRuns>};
// The same, which takes seconds on some graphs.
constexpr auto kSlowOther = SolveByRuns<PrepareCheckmateRuns>;

// What `best` can start from, within a limit of work (other_plans.h), unless a stop comes first.
std::vector<std::vector<OpId>> PlansOfOthers(const JointProblem& problem, SearchEffort effort,
                                             const SolveLimits& limits) {
  const WorkLimit limit(limits.stop, WorkOfOthers(effort));
  SolveLimits own_limits = limits;
  own_limits.stop = limit.token();
  std::vector<std::vector<OpId>> plans;
  const auto add = [&](auto solve) {
    Result<JointOutcome> outcome = UnlessStopped([&] {
      const StopScope scope(own_limits.stop);
      return solve(problem, own_limits);
    });
    if (outcome.ok()) plans.push_back(std::move(outcome->runs));
  };
  for (const auto& solve : kOthers) add(solve);
  if (effort != SearchEffort::kQuick) add(kSlowOther);
  return plans;
}

std::string GuaranteeOf(const JointProblem& problem, const BestOutcome& outcome) {
  const std::string scope =
      fmt::format("{}{}", DescriptionOf(outcome.scope), UnderConstraints(problem.request));
  if (outcome.is_optimal) return fmt::format("optimal among plans {}", scope);
  const auto once = static_cast<double>(problem.graph.cost().count());
  const auto gap = static_cast<double>(outcome.overhead - outcome.lower_bound);
  return fmt::format("heuristic: no plan {} saves more than {:.2f} % of a step", scope,
                     once > 0 ? 100 * gap / once : 0);
}

JointOutcome OutcomeOf(const JointProblem& problem, const BestOutcome& best) {
  return {*best.runs, best.is_optimal, GuaranteeOf(problem, best), Cost(best.lower_bound),
          Certificate{best.proof, best.scope, Cost(0), best.least_peak, Bytes(0)}};
}

// What the budget covers beside the peak: nothing, or all that no plan changes.
Bytes ConstantsInBudget(const JointGraph& graph, const PlanRequest& request) {
  if (!request.total_budget.is_given()) return Bytes(0);
  return TotalConstants(JointConstants(graph),
                        OptimizerState(request.optimizer, ParameterGradientBytes(graph)));
}

// A plan of the least peak that is found.
Result<JointOutcome> SolveBestForLeastPeak(const JointProblem& problem, BestProblem* shared,
                                           const BestOptions& options, const SolveLimits& limits) {
  const JointGraph& graph = problem.graph;
  BestOptions probe = options;
  probe.work = kQuickWork;
  CKPLAN_ASSIGN_OR_RETURN(const LeastPeak least,
                          FindLeastPeak(shared, probe, OwnOrderPeak(graph).count()));
  std::vector<OpId> runs = least.runs.value_or(problem.Obeying(OwnOrder(graph)));
  RunSimulator simulator(graph);
  const auto peak_of = [&](const std::vector<OpId>& plan) {
    return simulator.Run(plan).value().peak;
  };
  const JointProblem for_least{graph, problem.request,       std::nullopt,
                               true,  problem.is_recomputed, problem.rules};
  if (least.bound.bytes < peak_of(runs)) {
    for (std::vector<OpId>& other : PlansOfOthers(for_least, problem.request.effort, limits)) {
      if (peak_of(other) < peak_of(runs)) runs = std::move(other);
    }
  }
  BestOptions again = options;
  again.budget = peak_of(runs).count();
  again.starts = {runs};
  CKPLAN_ASSIGN_OR_RETURN(const BestOutcome best, SolveBest(shared, again));
  CKPLAN_CHECK(best.runs.has_value(), "best finds no worse than its starts");
  JointOutcome outcome = OutcomeOf(problem, best);
  PeakBound& bound = outcome.certificate->peak;
  if (least.bound.bytes > bound.bytes) bound = least.bound;
  const bool is_least = bound.bytes.count() == again.budget;
  outcome.is_optimal &= is_least;
  if (is_least)
    outcome.guarantee = LeastPeakProven(bound.scope, problem.request) + outcome.guarantee;
  return outcome;
}

bool IsEnough(const BestOptions& options, const BestOutcome& best) {
  return options.enough && best.runs && best.overhead <= *options.enough;
}

// The best plan within the budget, no worse than those of the other algorithms.
Result<BestOutcome> SolveBestAt(SearchEffort effort, const JointProblem& problem,
                                BestProblem* shared, const BestOptions& options,
                                const SolveLimits& limits) {
  CKPLAN_ASSIGN_OR_RETURN(BestOutcome best, SolveBest(shared, options));
  if (best.is_optimal || best.is_infeasible || limits.stop.stop_requested()) return best;
  if (IsEnough(options, best)) return best;
  RunSimulator simulator(problem.graph);
  BestOptions again = options;
  const size_t known = again.starts.size();
  for (std::vector<OpId>& other : PlansOfOthers(problem, effort, limits)) {
    const RunSimulation simulation = simulator.Run(other).value();
    const int64_t overhead = (simulation.cost - problem.graph.cost()).count();
    const bool is_better = !best.runs || overhead < best.overhead;
    if (is_better && simulation.peak <= *problem.budget) again.starts.push_back(std::move(other));
  }
  if (again.starts.size() == known) return best;
  // Programs and cuts find the same again; the annealing goes on from a better plan.
  again.work.programs = again.work.any_order = again.work.cut_trials = 0;
  again.before = &best;
  return SolveBest(shared, again);
}

// The same, no worse than with less effort.
Result<BestOutcome> SolveBestWithin(const JointProblem& problem, BestProblem* shared,
                                    BestOptions options, const SolveLimits& limits) {
  BestOutcome best;
  for (const SearchEffort effort : kEfforts) {
    options.work = WorkOf(effort);
    CKPLAN_ASSIGN_OR_RETURN(BestOutcome found,
                            SolveBestAt(effort, problem, shared, options, limits));
    best = std::move(found);
    options.before = &best;
    const bool is_optimal_in_any_order = best.runs && best.overhead <= best.any_order_bound;
    const bool is_final = is_optimal_in_any_order || best.is_infeasible ||
                          limits.stop.stop_requested() || IsEnough(options, best);
    if (is_final || effort == problem.request.effort) break;
  }
  return best;
}

// The plan of the least product of peak and time, of a dozen budgets between the least peak that is
// not excluded and that of the own order. Each starts from the plan for the one before, so that
// more memory never costs more time.
Result<JointOutcome> SolveBestForLeastProduct(const JointProblem& problem, BestProblem* shared,
                                              const BestOptions& options,
                                              const SolveLimits& limits) {
  const JointGraph& graph = problem.graph;
  constexpr int64_t kBudgets = 12;
  RunSimulator simulator(graph);
  const auto point_of = [&](const std::vector<OpId>& runs) {
    const RunSimulation simulation = simulator.Run(runs).value();
    return CurvePoint{simulation.peak, simulation.cost - graph.cost()};
  };
  std::vector<OpId> chosen = problem.Obeying(OwnOrder(graph));
  std::vector<CurvePoint> points = {point_of(chosen)};
  const int64_t high = points.front().peak.count();
  const int64_t low = std::min(high, shared->certificates().least_peak_any_plan);
  BestOptions at = options;
  at.work = kGlanceWork;
  for (int64_t i = 0; i <= kBudgets; ++i) {
    at.budget = i == kBudgets ? high : low + (high - low) / kBudgets * i;
    CKPLAN_ASSIGN_OR_RETURN(const BestOutcome best, SolveBest(shared, at));
    if (!best.runs) continue;
    at.starts = {*best.runs};
    points.push_back(point_of(*best.runs));
    if (IsBetterPoint(points.back(), point_of(chosen), graph.cost())) chosen = *best.runs;
  }
  BestOptions again = options;
  again.budget = point_of(chosen).peak.count();
  again.starts = {chosen};
  JointProblem within = problem;
  within.budget = Bytes(again.budget);
  CKPLAN_ASSIGN_OR_RETURN(const BestOutcome best, SolveBestWithin(within, shared, again, limits));
  CKPLAN_CHECK(best.runs.has_value(), "best finds no worse than its starts");
  JointOutcome outcome = OutcomeOf(problem, best);
  points.push_back(point_of(outcome.runs));
  outcome.curve = FrontOf(std::move(points));
  return outcome;
}

Result<JointOutcome> SolveByBest(const JointProblem& problem, const SolveLimits& limits) {
  BestProblem shared(problem.graph, problem.is_recomputed);
  BestOptions options;
  options.work = WorkOf(problem.request.effort);
  if (problem.wants_least_peak) return SolveBestForLeastPeak(problem, &shared, options, limits);
  if (!problem.budget) return SolveBestForLeastProduct(problem, &shared, options, limits);
  options.budget = problem.budget->count();
  CKPLAN_ASSIGN_OR_RETURN(const BestOutcome best,
                          SolveBestWithin(problem, &shared, options, limits));
  if (best.runs) return OutcomeOf(problem, best);
  options.work = kQuickWork;
  CKPLAN_ASSIGN_OR_RETURN(JointOutcome least,
                          SolveBestForLeastPeak(problem, &shared, options, limits));
  const bool is_proven = best.least_peak.bytes > *problem.budget;
  least.note = WhatIsProven(is_proven ? best.least_peak : least.certificate->peak, *problem.budget,
                            ConstantsInBudget(problem.graph, problem.request), problem.request);
  return least;
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

Result<Plan> SolveAndCheck(const JointSolver& solver, const JointProblem& problem,
                           const SolveLimits& limits) {
  const StopScope scope(limits.stop);
  PollStop();
  CKPLAN_ASSIGN_OR_RETURN(const JointOutcome outcome, solver.solve(problem, limits));
  // What a search has found in time is told whole.
  std::optional<StopsSuspended> whole;
  const bool is_cut_short = outcome.guarantee.starts_with(kStoppedEarly);
  if (solver.name == kBestAlgorithm || is_cut_short) whole.emplace();
  Plan plan = AssembleJointPlan(problem.graph, outcome.runs);
  if (problem.budget && plan.figures.peak > *problem.budget) {
    Error error = Infeasible(problem, solver.name, plan);
    if (!outcome.note.empty()) error.notes.push_back(outcome.note);
    return error;
  }
  plan.request = Settled(problem, solver.name, plan.figures.peak);
  plan.figures.is_optimal =
      outcome.is_optimal && (!problem.wants_least_peak || solver.name == kBestAlgorithm);
  plan.figures.guarantee = outcome.guarantee;
  if (outcome.lower_bound) plan.figures.lower_bound_cost = outcome.lower_bound;
  plan.figures.curve = outcome.curve;
  if (outcome.certificate) AddCertificate(*outcome.certificate, &plan.figures);
  plan.figures.optimizer_state =
      OptimizerState(problem.request.optimizer, ParameterGradientBytes(problem.graph));
  const std::vector<std::string> faults = CheckJointPlan(problem.graph, plan);
  CKPLAN_CHECK(faults.empty(), faults.front());
  return plan;
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
    BestProblem shared(problem.graph, problem.is_recomputed);
    BestOptions options;
    options.budget = problem.budget->count();
    options.enough = enough.count();
    CKPLAN_ASSIGN_OR_RETURN(const BestOutcome best,
                            SolveBestWithin(problem, &shared, options, limits));
    PlanWithin found;
    if (!best.runs) return found;
    found.least_found = Cost(best.overhead);
    if (*found.least_found > enough) return found;
    found.plan = AssembleJointPlan(problem.graph, *best.runs);
    return found;
  });
}

bool PlansJointGraphs(std::string_view algorithm) {
  return std::any_of(kJointSolvers.begin(), kJointSolvers.end(),
                     [&](const JointSolver& solver) { return solver.name == algorithm; });
}

}  // namespace ckplan
