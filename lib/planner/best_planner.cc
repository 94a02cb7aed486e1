#include "lib/planner/best_planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/algorithms/best/best.h"
#include "lib/algorithms/best/least_peak.h"
#include "lib/base/stop.h"
#include "lib/joint/expand.h"
#include "lib/joint/simulate_runs.h"
#include "lib/plan/assemble.h"
#include "lib/plan/check.h"
#include "lib/planner/joint_planner.h"
#include "lib/planner/peak_budget.h"
#include "lib/planner/planner.h"
#include "lib/planner/registry.h"
#include "lib/schedule/simulate.h"

namespace ckplan {
namespace {

using Order = std::vector<NodeId>;

Order OwnForwardOrder(const TensorGraph& graph) {
  Order order;
  for (const NodeId id : graph.nodes().ids()) order.push_back(id);
  return order;
}

// What is searched for one order of the forward pass, with plans in this order.
struct OrderedProblem {
  Order order;
  std::vector<Schedule> starts;
};

// What was found for an order and a budget, as BestOutcome has it.
struct Solution {
  std::optional<Schedule> schedule;
  int64_t overhead = 0;
  int64_t lower_bound = 0;  // Of all plans in the order of the schedule, or in any.
  bool is_optimal = false;
  bool is_infeasible = false;
  bool has_least_peak = false;   // Proven: no plan in any order has a lower one.
  bool is_of_any_order = false;  // What is proven of the time holds for plans in any order.

  bool IsBetterThan(const Solution& other) const {
    return schedule && (!other.schedule || overhead < other.overhead);
  }
};

Bytes PeakInOrder(const TensorGraph& graph, const Order& order) {
  return Simulator(graph).Run(KeepAllSchedule(order)).value().peak;
}

// Solves for one budget after the other.
class BestSearch {
 public:
  BestSearch(const TensorGraph& graph, const PlanRequest& request, const SolveLimits& limits)
      : graph_(graph),
        request_(request),
        limits_(limits),
        own_order_(OwnForwardOrder(graph)),
        expansion_(ExpandTensorGraph(graph)) {
    if (request.order == StepOrder::kFree) any_order_ = ExpandForAnyOrder(graph);
  }

  // The best plan that is found of those that the request allows.
  Result<Solution> Solve(Bytes budget) {
    CKPLAN_ASSIGN_OR_RETURN(Solution best, SolveMirrored(budget));
    if (!any_order_ || (best.schedule && best.overhead == 0)) return best;
    return SolveInAnyOrder(budget, best);
  }

  // The plan of the least peak that is found, of the least time for it.
  Result<Solution> SolveForLeastPeak() {
    CKPLAN_ASSIGN_OR_RETURN(Solution least, FindLeast());
    KeepInCaseOfStop(least);
    CKPLAN_ASSIGN_OR_RETURN(Solution again, Solve(PeakOf(least)));
    again.has_least_peak = least.has_least_peak;
    if (again.IsBetterThan(least) || again.is_optimal) return again;
    return least;
  }

  // A plan of the least peak that is found.
  Result<Solution> FindLeast() {
    Solution least = LeastOfOthers();
    BestOptions options;
    options.work = kQuickWork;
    options.is_order_free = false;
    CKPLAN_ASSIGN_OR_RETURN(
        const LeastPeak lower,
        FindLeastPeak(expansion_.graph, std::move(options), PeakOf(least).count()));
    if (lower.runs) {
      least = {ScheduleOf(expansion_, *lower.runs)};
      least.overhead = Simulator(graph_).Run(*least.schedule).value().overhead.count();
    }
    least.has_least_peak = lower.is_proven;
    return any_order_ ? FindLeastInAnyOrder(least) : least;
  }

  // The plan of the least product of peak and time, of budgets between the least peak and what
  // keeping everything needs.
  Result<Solution> SolveForLeastProduct() {
    CKPLAN_ASSIGN_OR_RETURN(Solution chosen, SolveForLeastPeak());
    const Bytes low = PeakOf(chosen);
    const Bytes high = PeakInOrder(graph_, own_order_);
    double least_product = ProductOf(chosen);
    for (int64_t i = 1; i <= kCurveSteps; ++i) {
      const Bytes budget(low.count() + (high.count() - low.count()) / kCurveSteps * i);
      CKPLAN_ASSIGN_OR_RETURN(Solution tried, SolveOwnOrder(budget, kQuickWork, {}));
      if (!tried.schedule || ProductOf(tried) >= least_product) continue;
      least_product = ProductOf(tried);
      chosen = std::move(tried);
    }
    CKPLAN_ASSIGN_OR_RETURN(Solution again, Solve(PeakOf(chosen)));
    return again.IsBetterThan(chosen) ? again : chosen;
  }

  // The best of what was found before a stop ended the search.
  const std::optional<Solution>& found() const { return found_; }

 private:
  void KeepInCaseOfStop(const Solution& solution) {
    if (solution.schedule) found_ = solution;
  }

  static constexpr int64_t kCurveSteps = 12;

  // The best plan of the graph's own order, and, unless none can be better, of the orders of the
  // other algorithms' plans, which are starts as well.
  Result<Solution> SolveMirrored(Bytes budget) {
    CKPLAN_ASSIGN_OR_RETURN(Solution best, SolveOwnOrder(budget, WorkOf(request_.effort), {}));
    KeepInCaseOfStop(best);
    if (best.is_optimal && best.overhead == 0) return best;
    for (const OrderedProblem& problem : OthersWithin(budget, best)) {
      CKPLAN_ASSIGN_OR_RETURN(Solution other, SolveInOrder(budget, problem));
      if (other.IsBetterThan(best)) best = std::move(other);
      KeepInCaseOfStop(best);
    }
    return best;
  }

  Result<Solution> SolveOwnOrder(Bytes budget, const BestWork& work,
                                 const std::vector<Schedule>& starts) {
    return SolveExpansion(expansion_, budget, work, starts);
  }

  Result<Solution> SolveInOrder(Bytes budget, const OrderedProblem& problem) {
    const BestWork work = WorkOf(request_.effort);
    if (problem.order == own_order_) return SolveOwnOrder(budget, work, problem.starts);
    return SolveExpansion(ExpandTensorGraph(graph_, problem.order), budget, work, problem.starts);
  }

  static Result<Solution> SolveExpansion(const Expansion& expansion, Bytes budget,
                                         const BestWork& work,
                                         const std::vector<Schedule>& starts) {
    BestOptions options;
    options.budget = budget.count();
    options.work = work;
    options.is_order_free = false;  // A schedule runs backward in the reverse of its forward order.
    for (const Schedule& start : starts) options.starts.push_back(RunsOf(expansion, start));
    CKPLAN_ASSIGN_OR_RETURN(const BestOutcome outcome, SolveBest(expansion.graph, options));
    Solution solution{std::nullopt, outcome.overhead, outcome.lower_bound, outcome.is_optimal,
                      outcome.is_infeasible};
    if (outcome.runs) solution.schedule = ScheduleOf(expansion, *outcome.runs);
    return solution;
  }

  // The better of what is known and what is found with steps in any order, and what is proven of
  // plans in any order.
  Result<Solution> SolveInAnyOrder(Bytes budget, const Solution& known) {
    BestOptions options;
    options.budget = budget.count();
    options.work = WorkOf(request_.effort);
    options.is_own_order_enough = false;
    if (known.schedule) {
      Runs start = RunsOf(*any_order_, *known.schedule);
      // Gradients may be added up in another order in it.
      if (RunSimulator(any_order_->graph).Run(start).ok()) options.starts.push_back(start);
    }
    CKPLAN_ASSIGN_OR_RETURN(const BestOutcome outcome, SolveBest(any_order_->graph, options));
    Solution best = known;
    if (outcome.runs && (!known.schedule || outcome.overhead < known.overhead)) {
      const Schedule schedule = ScheduleOf(*any_order_, *outcome.runs);
      // The expanded graph may need less, see ExpandForAnyOrder.
      if (Simulator(graph_).Run(schedule).value().peak <= budget) {
        best = {schedule, outcome.overhead, 0, false, false};
      }
    }
    // A plan that adds up gradients in another order is none of the expanded graph's, and may be
    // below their bound; what is proven of it is what was proven of its own order.
    if (best.schedule && best.overhead < outcome.any_order_bound) return best;
    best.lower_bound = outcome.any_order_bound;
    best.is_optimal = best.schedule && best.overhead == best.lower_bound;
    best.is_infeasible = outcome.is_infeasible && outcome.scope == BoundScope::kAnyOrder;
    best.is_of_any_order = true;
    return best;
  }

  Result<Solution> FindLeastInAnyOrder(const Solution& known) {
    BestOptions options;
    options.work = kQuickWork;
    CKPLAN_ASSIGN_OR_RETURN(
        const LeastPeak lower,
        FindLeastPeak(any_order_->graph, std::move(options), PeakOf(known).count()));
    Solution least = known;
    least.has_least_peak = lower.is_proven && !lower.runs;
    if (!lower.runs) return least;
    const Schedule schedule = ScheduleOf(*any_order_, *lower.runs);
    const Simulation simulation = Simulator(graph_).Run(schedule).value();
    // The expanded graph may need less, see ExpandForAnyOrder.
    if (simulation.peak >= PeakOf(known)) return least;
    const Bytes proven = RunSimulator(any_order_->graph).Run(*lower.runs).value().peak;
    least = {schedule, simulation.overhead.count(), 0, false, false};
    least.has_least_peak = lower.is_proven && simulation.peak == proven;
    return least;
  }

  Bytes PeakOf(const Solution& solution) const {
    return Simulator(graph_).Run(*solution.schedule).value().peak;
  }

  double ProductOf(const Solution& solution) const {
    const Cost time = graph_.forward_cost() + graph_.backward_cost() + Cost(solution.overhead);
    return static_cast<double>(PeakOf(solution).count()) * static_cast<double>(time.count());
  }

  Result<Plan> PlanBy(std::string_view algorithm, const Budget& budget) const {
    PlanRequest own = request_;
    own.algorithm = algorithm;
    own.order = StepOrder::kModel;
    own.budget = budget;
    own.total_budget = {};
    return MakePlan(graph_, own, limits_);
  }

  // `wants_own_order`: also by algorithms that keep the graph's own order.
  std::vector<Plan> PlansOfOthers(const Budget& budget, bool wants_own_order) const {
    std::vector<Plan> plans;
    for (const SolverInfo& info : AllSolvers()) {
      // They take most of the time.
      if (request_.effort == SearchEffort::kQuick && IsSlow(info)) continue;
      if (!wants_own_order && PlansJointGraphs(info.name)) continue;
      Result<Plan> plan = PlanBy(info.name, budget);
      if (plan.ok()) plans.push_back(std::move(plan).value());
    }
    return plans;
  }

  // Orders of other algorithms' plans that may lead to a better plan: since the plan is better, or
  // since the order needs less memory from the start.
  std::vector<OrderedProblem> OthersWithin(Bytes budget, const Solution& own) const {
    const bool is_settled = own.is_optimal || own.is_infeasible;
    std::vector<OrderedProblem> problems;
    for (const Plan& plan : PlansOfOthers(Budget::Of(budget), !is_settled)) {
      const Order order = ForwardOrder(plan.schedule);
      const bool is_better = !own.schedule || plan.figures.overhead.count() < own.overhead;
      const bool is_lighter = PeakInOrder(graph_, order) < PeakInOrder(graph_, own_order_);
      // Solved to the end: no plan in this order is better.
      if (order == own_order_ ? is_settled : !is_better && !is_lighter) continue;
      auto found = std::find_if(problems.begin(), problems.end(),
                                [&](const OrderedProblem& p) { return p.order == order; });
      if (found == problems.end()) found = problems.insert(found, {order, {}});
      found->starts.push_back(plan.schedule);
    }
    return problems;
  }

  // The plan of the least peak by any other algorithm; keep-all is one of them.
  Solution LeastOfOthers() const {
    std::optional<Plan> least;
    for (Plan& plan : PlansOfOthers({Budget::Kind::kMin, Bytes(0), 0}, true)) {
      if (!least || plan.figures.peak < least->figures.peak) least = std::move(plan);
    }
    PollStop();  // What others make of a stop is an error.
    CKPLAN_CHECK(least.has_value(), "keep-all has a plan for every graph");
    return {least->schedule, least->figures.overhead.count(), 0, false, false};
  }

  const TensorGraph& graph_;
  const PlanRequest& request_;
  const SolveLimits& limits_;
  const Order own_order_;
  const Expansion expansion_;           // In the graph's own order.
  std::optional<Expansion> any_order_;  // If the request allows any.
  std::optional<Solution> found_;
};

std::string GuaranteeOf(const TensorGraph& graph, const Solution& solution) {
  if (solution.overhead == 0) return "optimal: nothing runs twice";
  const std::string_view order =
      solution.is_of_any_order ? "in any order" : "in its order of operations";
  if (solution.is_optimal) return fmt::format("optimal among plans {}", order);
  const auto step = static_cast<double>((graph.forward_cost() + graph.backward_cost()).count());
  const auto gap = static_cast<double>(solution.overhead - solution.lower_bound);
  return fmt::format("heuristic: no plan {} saves more than {:.2f} % of a step", order,
                     step > 0 ? 100 * gap / step : 0);
}

Plan PlanOf(const TensorGraph& graph, const PlanRequest& request, const Solution& solution) {
  Plan plan = AssemblePlan(graph, *solution.schedule,
                           IdVector<NodeId, int32_t>(graph.nodes().size()), PlaceTightly);
  plan.request = request;
  plan.request.algorithm = kBestAlgorithm;
  plan.request.objective = Objective::kTime;
  plan.request.total_budget = {};
  plan.request.budget = Budget::Of(plan.figures.peak);
  const bool wants_least_peak = PeakBudgetOf(request).kind == Budget::Kind::kMin;
  plan.figures.is_optimal = solution.is_optimal && (!wants_least_peak || solution.has_least_peak);
  plan.figures.lower_bound_cost = Cost(solution.lower_bound);
  plan.figures.guarantee = GuaranteeOf(graph, solution);
  if (solution.has_least_peak) {
    plan.figures.guarantee.insert(0, kLeastPeakProven);
  }
  plan.figures.paper = {std::nullopt, plan.figures.peak, plan.figures.overhead};
  plan.figures.optimizer_state =
      OptimizerState(request.optimizer, graph.constants().parameter_gradients);
  const std::vector<std::string> faults = CheckPlan(graph, plan);
  CKPLAN_CHECK(faults.empty(), faults.front());
  return plan;
}

// The refusal names the least peak that can be reached, and says whether it is proven that nothing
// fits.
Result<Plan> Refuse(const TensorGraph& graph, const PlanRequest& request, bool is_proven,
                    BestSearch* search) {
  CKPLAN_ASSIGN_OR_RETURN(const Solution least, search->FindLeast());
  const Simulation simulation = Simulator(graph).Run(*least.schedule).value();
  Error error = Infeasible(graph, request, kBestAlgorithm, simulation.peak,
                           least.schedule->steps[simulation.peak_step]);
  const std::string_view order =
      request.order == StepOrder::kFree ? "in any order" : "in this order of operations";
  error.notes.push_back(is_proven ? fmt::format("it is proven that no plan {} fits", order)
                                  : "it is not proven that none fits");
  return error;
}

Result<Done> CheckSettings(const PlanRequest& request) {
  if (request.paper_budget.is_given()) {
    return MakeError(ErrorCode::kUsage, "best has no budget of its own; give it one on the peak");
  }
  if (!request.uses_liveness || request.granularity == Granularity::kLayer) {
    return MakeError(ErrorCode::kUsage,
                     "best plans with liveness, and decides on nodes; it takes no other form");
  }
  return Done{};
}

}  // namespace

BestWork WorkOf(SearchEffort effort) {
  switch (effort) {
    case SearchEffort::kQuick:
      return kQuickWork;
    case SearchEffort::kNormal:
      return kNormalWork;
    case SearchEffort::kThorough:
      return kThoroughWork;
  }
  return kNormalWork;
}

Result<Plan> MakeBestPlan(const TensorGraph& graph, const PlanRequest& request,
                          const SolveLimits& limits) {
  CKPLAN_RETURN_IF_ERROR(CheckSettings(request));
  const Budget& budget = PeakBudgetOf(request);
  const bool is_fixed = budget.is_given() && budget.kind != Budget::Kind::kMin;
  const Bytes bytes = is_fixed ? ActivationBudget(graph, request) : Bytes(0);
  std::optional<BestSearch> search;
  const auto solve = [&]() -> Result<Solution> {
    const StopScope scope(limits.stop);
    search.emplace(graph, request, limits);
    if (!budget.is_given()) return search->SolveForLeastProduct();
    return is_fixed ? search->Solve(bytes) : search->SolveForLeastPeak();
  };
  Result<Solution> solution = UnlessStopped(solve);
  const bool is_stopped = limits.stop.stop_requested();
  if (solution.ok() && !solution->schedule && !is_stopped) {
    return UnlessStopped([&] {
      const StopScope scope(limits.stop);
      return Refuse(graph, request, solution->is_infeasible, &*search);
    });
  }
  // What was found is told whole.
  const StopsSuspended whole;
  if (!solution.ok() && is_stopped && search && search->found()) solution = *search->found();
  if (!solution.ok()) return std::move(solution).error();
  if (!solution->schedule) return MakeError(ErrorCode::kTimeout, "stopped");
  Plan plan = PlanOf(graph, request, *solution);
  if (is_stopped) plan.figures.guarantee.insert(0, kStoppedEarly);
  if (is_fixed) plan.request.budget = Budget::Of(bytes);
  return plan;
}

}  // namespace ckplan
