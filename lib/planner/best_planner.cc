#include "lib/planner/best_planner.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <vector>

#include "lib/algorithms/best/certificates.h"
#include "lib/algorithms/best/one_cut.h"
#include "lib/algorithms/best/required_ops.h"
#include "lib/base/human_bytes.h"
#include "lib/base/stop.h"
#include "lib/joint/expand.h"
#include "lib/joint/run_problem.h"
#include "lib/joint/simulate_runs.h"
#include "lib/plan/added_time.h"
#include "lib/plan/assemble.h"
#include "lib/plan/check.h"
#include "lib/planner/best_search.h"
#include "lib/planner/constants_shortage.h"
#include "lib/planner/micro_batch_search.h"
#include "lib/planner/obedience.h"
#include "lib/planner/peak_budget.h"
#include "lib/schedule/simulate.h"

namespace ckplan {
namespace {

std::string GuaranteeOf(const TensorGraph& graph, const PlanRequest& request,
                        const BestSolution& solution) {
  if (solution.overhead == 0) return "optimal: nothing runs twice";
  const BoundScope order =
      solution.scope == BoundScope::kAnyOrder ? BoundScope::kAnyOrder : BoundScope::kPlanOrder;
  const std::string scope = fmt::format("{}{}", DescriptionOf(order), UnderConstraints(request));
  if (solution.is_optimal) return fmt::format("optimal among plans {}", scope);
  const auto step = static_cast<double>((graph.forward_cost() + graph.backward_cost()).count());
  const auto gap = static_cast<double>(solution.overhead - solution.lower_bound);
  return fmt::format("heuristic: no plan {} saves more than {:.2f} % of a step", scope,
                     step > 0 ? 100 * gap / step : 0);
}

Plan PlanOf(const TensorGraph& graph, const PlanRequest& request, const BestSolution& solution,
            std::vector<CurvePoint> curve) {
  Plan plan = AssemblePlan(graph, *solution.schedule,
                           IdVector<NodeId, int32_t>(graph.nodes().size()), PlaceTightly);
  plan.request = request;
  plan.request.algorithm = kBestAlgorithm;
  plan.request.objective = Objective::kTime;
  plan.request.total_budget = {};
  if (PeakBudgetOf(request).is_given()) plan.request.budget = Budget::Of(plan.figures.peak);
  const bool wants_least_peak = PeakBudgetOf(request).kind == Budget::Kind::kMin;
  const bool has_least_peak = plan.figures.peak == solution.least_peak.bytes;
  plan.figures.is_optimal = solution.is_optimal && (!wants_least_peak || has_least_peak);
  plan.figures.lower_bound_cost = Cost(solution.lower_bound);
  plan.figures.guarantee = GuaranteeOf(graph, request, solution);
  if (wants_least_peak && has_least_peak) {
    plan.figures.guarantee.insert(0, LeastPeakProven(solution.least_peak.scope, request));
  }
  AddCertificate({solution.proof, solution.scope, Cost(0), solution.least_peak, Bytes(0)},
                 &plan.figures);
  plan.figures.curve = std::move(curve);
  plan.figures.paper = {std::nullopt, plan.figures.peak, plan.figures.overhead};
  plan.figures.optimizer_state = OptimizerState(request.optimizer, graph.optimized_bytes());
  const std::vector<std::string> faults = CheckPlan(graph, plan);
  CKPLAN_CHECK(faults.empty(), faults.front());
  return plan;
}

// The refusal names the least peak that can be reached, and says whether it is proven that nothing
// fits.
template <typename Search>
Result<Plan> Refuse(const TensorGraph& graph, const PlanRequest& request, const PeakBound& known,
                    Search* search) {
  CKPLAN_ASSIGN_OR_RETURN(const BestSolution least, search->FindLeast());
  const Simulation simulation = Simulator(graph).Run(*least.schedule).value();
  Error error = Infeasible(graph, request, kBestAlgorithm, simulation.peak,
                           least.schedule->steps[simulation.peak_step]);
  const Bytes budget = ActivationBudget(graph, request);
  const Bytes state = OptimizerState(request.optimizer, graph.optimized_bytes());
  if (auto note = ConstantsNote(graph.constants(), state, request)) {
    error.notes.push_back(*std::move(note));
  }
  error.notes.push_back(WhatIsProven(known.bytes > budget ? known : least.least_peak, budget,
                                     ConstantsInBudget(graph, request), request));
  return error;
}

Cost AddedWithoutBudget(const TensorGraph& graph) {
  return MostAdded(kAddedPercentWithoutBudget, graph.forward_cost() + graph.backward_cost());
}

// By BestSearch, or MicroBatchSearch where other micro-batches keep what a plan saves.
template <typename Search>
Result<Plan> MakePlanBySearch(const TensorGraph& graph, const PlanRequest& request,
                              const SolveLimits& limits) {
  const Budget& budget = PeakBudgetOf(request);
  const bool is_fixed = budget.is_given() && budget.kind != Budget::Kind::kMin;
  const Bytes bytes = is_fixed ? ActivationBudget(graph, request) : Bytes(0);
  std::optional<Search> search;
  const auto solve = [&]() -> Result<BestSolution> {
    const StopScope scope(limits.stop);
    search.emplace(graph, request, limits);
    if (!budget.is_given()) return search->SolveWithinAddedTime(AddedWithoutBudget(graph));
    return is_fixed ? search->Solve(bytes) : search->SolveForLeastPeak();
  };
  Result<BestSolution> solution = UnlessStopped(solve);
  const bool is_stopped = limits.stop.stop_requested();
  if (solution.ok() && !solution->schedule && !is_stopped) {
    return UnlessStopped([&] {
      const StopScope scope(limits.stop);
      return Refuse(graph, request, solution->least_peak, &*search);
    });
  }
  // What was found is reported to the end.
  const StopsSuspended whole;
  if (!solution.ok() && is_stopped && search && search->found()) solution = *search->found();
  if (!solution.ok()) return std::move(solution).error();
  if (!solution->schedule) return MakeError(ErrorCode::kTimeout, "stopped");
  Plan plan = PlanOf(graph, request, *solution, search->CurveWith(*solution));
  if (is_stopped) plan.figures.guarantee.insert(0, kStoppedEarly);
  if (is_fixed) plan.request.budget = Budget::Of(bytes);
  return plan;
}

Result<Done> CheckSettings(const PlanRequest& request) {
  if (request.paper_budget.is_given()) {
    return Error{ErrorCode::kUsage,
                 "best has no budget of its own; a paper budget is for algorithms whose paper has "
                 "one",
                 {},
                 {"use", {{"algorithm", "exact-dp"}}}};
  }
  if (!request.uses_liveness || request.granularity == Granularity::kLayer) {
    return Error{ErrorCode::kUsage,
                 "best plans with liveness, and decides on nodes; it takes no other form",
                 {},
                 {"use", {{"algorithm", "approx-dp"}}}};
  }
  return Done{};
}

}  // namespace

std::string LeastPeakProven(BoundScope scope, const PlanRequest& request) {
  return fmt::format("no plan {}{} has a lower peak; ", DescriptionOf(scope),
                     UnderConstraints(request));
}

std::string WhatIsProven(const PeakBound& bound, Bytes budget, Bytes constants,
                         const PlanRequest& request) {
  const Bytes needed = bound.bytes + constants;
  return fmt::format("it is {}proven that no plan {}{} fits: each needs at least {} ({} bytes)",
                     bound.bytes > budget ? "" : "not ", DescriptionOf(bound.scope),
                     UnderConstraints(request), HumanBytes(needed), needed.count());
}

void AddCertificate(Certificate certificate, PlanFigures* figures) {
  certificate.gap = figures->overhead - *figures->lower_bound_cost;
  certificate.peak_gap = figures->peak - certificate.peak.bytes;
  figures->certificate = certificate;
}

Result<Plan> MakeBestPlan(const TensorGraph& graph, const PlanRequest& request,
                          const SolveLimits& limits) {
  CKPLAN_RETURN_IF_ERROR(CheckSettings(request));
  return graph.micro_batches() > 1 ? MakePlanBySearch<MicroBatchSearch>(graph, request, limits)
                                   : MakePlanBySearch<BestSearch>(graph, request, limits);
}

Result<PlanWithin> FindBestPlanWithin(const TensorGraph& graph, const PlanRequest& request,
                                      Cost enough, const SolveLimits& limits) {
  CKPLAN_RETURN_IF_ERROR(CheckSettings(request));
  CKPLAN_RETURN_IF_ERROR(CheckConstraints(graph, request));
  const Bytes budget = ActivationBudget(graph, request);
  return UnlessStopped([&]() -> Result<PlanWithin> {
    const StopScope scope(limits.stop);
    BestSolution solution;
    if (graph.micro_batches() > 1) {
      CKPLAN_ASSIGN_OR_RETURN(solution, MicroBatchSearch(graph, request, limits).Solve(budget));
    } else {
      BestSearch search(graph, request, limits, enough);
      CKPLAN_ASSIGN_OR_RETURN(solution, search.Solve(budget));
    }
    PlanWithin found;
    if (!solution.schedule) return found;
    found.least_found = Cost(solution.overhead);
    if (*found.least_found > enough) return found;
    found.plan = PlanOf(graph, request, solution, {});
    found.plan->request.budget = Budget::Of(budget);
    return found;
  });
}

Result<std::vector<CurvePoint>> TraceBestCurve(const TensorGraph& graph, const PlanRequest& request,
                                               const SolveLimits& limits) {
  CKPLAN_RETURN_IF_ERROR(CheckSettings(request));
  return UnlessStopped([&]() -> Result<std::vector<CurvePoint>> {
    const StopScope scope(limits.stop);
    const Cost most_added = AddedWithoutBudget(graph);
    return graph.micro_batches() > 1
               ? MicroBatchSearch(graph, request, limits).TraceCurve(most_added)
               : BestSearch(graph, request, limits).TraceCurve(most_added);
  });
}

std::optional<Cost> OwnOrderBound(const TensorGraph& graph, Bytes budget) {
  return OwnOrderBound(ExpandTensorGraph(graph).graph, budget);
}

std::optional<Cost> OwnOrderBound(const JointGraph& graph, Bytes budget) {
  const RunProblem problem(graph);
  if (FindCertificates(problem).least_peak_any_plan > budget.count()) return std::nullopt;
  const Runs order = RequiredOwnOrder(problem);
  const size_t moment = RunSimulator(graph).Run(order).value().peak_step;
  const OneCut cut = CutAtMoment(problem, order, moment, budget.count());
  if (!cut.is_feasible) return std::nullopt;
  return Cost(cut.added_cost);
}

}  // namespace ckplan
