#include "lib/planner/best_planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/algorithms/best/best.h"
#include "lib/algorithms/best/certificates.h"
#include "lib/algorithms/best/least_peak.h"
#include "lib/algorithms/best/one_cut.h"
#include "lib/algorithms/best/required_ops.h"
#include "lib/base/human_bytes.h"
#include "lib/base/stop.h"
#include "lib/joint/expand.h"
#include "lib/joint/run_problem.h"
#include "lib/joint/simulate_runs.h"
#include "lib/plan/assemble.h"
#include "lib/plan/check.h"
#include "lib/planner/other_plans.h"
#include "lib/planner/peak_budget.h"
#include "lib/schedule/backward_order.h"
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
  OverheadProof proof = OverheadProof::kRunOnce;
  BoundScope scope = BoundScope::kAnyOrder;  // Of `lower_bound`.
  PeakBound least_peak = {};

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
  // With `enough`, solving for a budget ends with a plan that adds no more time, or with the proof
  // that there is none.
  BestSearch(const TensorGraph& graph, const PlanRequest& request, const SolveLimits& limits,
             std::optional<Cost> enough = std::nullopt)
      : graph_(graph),
        request_(request),
        limits_(limits),
        enough_(enough),
        own_order_(OwnForwardOrder(graph)),
        expansion_(ExpandTensorGraph(graph)),
        own_problem_(expansion_.graph) {
    if (request.order != StepOrder::kFree) return;
    any_order_ = ExpandForAnyOrder(graph);
    any_order_problem_.emplace(any_order_->graph);
  }

  // The best plan that is found of those that the request allows, no worse than `known`, which is
  // one within the budget.
  Result<Solution> Solve(Bytes budget, const std::optional<Schedule>& known = std::nullopt) {
    const bool is_mirrored = known && IsMirrored(*known);
    CKPLAN_ASSIGN_OR_RETURN(Solution best,
                            SolveMirrored(budget, is_mirrored ? known : std::nullopt));
    if (known && !is_mirrored) {
      Solution start{*known, Simulator(graph_).Run(*known).value().overhead.count()};
      if (start.IsBetterThan(best)) best = std::move(start);
    }
    if (!any_order_ || (best.schedule && best.overhead == 0) || IsEnough(best)) return best;
    return SolveInAnyOrder(budget, best);
  }

  // The plan of the least peak that is found, of the least time for it.
  Result<Solution> SolveForLeastPeak() {
    CKPLAN_ASSIGN_OR_RETURN(Solution least, FindLeast());
    KeepInCaseOfStop(least);
    CKPLAN_ASSIGN_OR_RETURN(Solution again, Solve(PeakOf(least), least.schedule));
    // A bound for the own order's sums says nothing of another forward order, where they differ.
    const bool is_for_all = any_order_ || IsInOwnOrder(*again.schedule);
    if (is_for_all && least.least_peak.bytes > again.least_peak.bytes) {
      again.least_peak = least.least_peak;
    }
    return again;
  }

  // A plan of the least peak that is found, and what is proven of the least peak: in the graph's
  // own order, or in any if the request allows any.
  Result<Solution> FindLeast() {
    Solution least = LeastOfOthers();
    KeepInCaseOfStop(least);
    BestOptions options;
    options.work = kQuickWork;
    options.is_order_free = false;
    CKPLAN_ASSIGN_OR_RETURN(const LeastPeak lower, FindLeastPeak(&own_problem_, std::move(options),
                                                                 PeakOf(least).count()));
    if (lower.runs) {
      least = {ScheduleOf(expansion_, *lower.runs)};
      least.overhead = Simulator(graph_).Run(*least.schedule).value().overhead.count();
    }
    least.least_peak = lower.bound;
    return any_order_ ? FindLeastInAnyOrder(least) : least;
  }

  // The plan of the least product of peak and time, of budgets between the least peak that is not
  // excluded and what keeping everything needs. Each starts from the plan for the one before, so
  // that more memory never costs more time.
  Result<Solution> SolveForLeastProduct() {
    Solution chosen = KeepingAll();
    curve_ = {PointOf(chosen)};
    KeepInCaseOfStop(chosen);
    const int64_t high = PeakOf(chosen).count();
    const int64_t low = std::min(high, own_problem_.certificates().least_peak_any_plan);
    std::vector<Schedule> starts;
    for (int64_t i = 0; i < kCurveSteps; ++i) {
      const Bytes budget(low + (high - low) / kCurveSteps * i);
      CKPLAN_ASSIGN_OR_RETURN(Solution tried, SolveOwnOrder(budget, kGlanceWork, starts));
      if (!tried.schedule) continue;
      starts = {*tried.schedule};
      curve_.push_back(PointOf(tried));
      if (IsBetterPoint(PointOf(tried), PointOf(chosen), StepCost())) chosen = std::move(tried);
      KeepInCaseOfStop(chosen);
    }
    return Solve(PeakOf(chosen), chosen.schedule);
  }

  // What SolveForLeastProduct has found on the way, and what it returned; else nothing.
  std::vector<CurvePoint> CurveWith(const Solution& chosen) const {
    if (curve_.empty()) return {};
    std::vector<CurvePoint> points = curve_;
    points.push_back(PointOf(chosen));
    return FrontOf(std::move(points));
  }

  // The best of what was found before a stop ended the search.
  const std::optional<Solution>& found() const { return found_; }

 private:
  void KeepInCaseOfStop(const Solution& solution) {
    if (solution.schedule) found_ = solution;
  }

  static constexpr int64_t kCurveSteps = 12;

  // The best plan of the graph's own order, and, unless none can be better, of the orders of the
  // other algorithms' plans, which are starts as well. So is `known`, a plan within the budget.
  Result<Solution> SolveMirrored(Bytes budget, const std::optional<Schedule>& known) {
    std::vector<Schedule> starts;
    if (known && IsInOwnOrder(*known)) starts.push_back(*known);
    CKPLAN_ASSIGN_OR_RETURN(Solution best, SolveOwnOrder(budget, WorkOf(request_.effort), starts));
    KeepInCaseOfStop(best);
    if ((best.is_optimal && best.overhead == 0) || IsEnough(best)) return best;
    const SearchEffort effort = best.is_optimal ? SearchEffort::kQuick : request_.effort;
    for (const OrderedProblem& problem : OthersWithin(budget, best, known, effort)) {
      CKPLAN_ASSIGN_OR_RETURN(Solution other, SolveInOrder(budget, problem, WorkOf(effort)));
      if (other.IsBetterThan(best)) best = std::move(other);
      KeepInCaseOfStop(best);
      if (IsEnough(best)) break;
    }
    return best;
  }

  bool IsEnough(const Solution& solution) const {
    return enough_ && solution.schedule && solution.overhead <= enough_->count();
  }

  Result<Solution> SolveOwnOrder(Bytes budget, const BestWork& work,
                                 const std::vector<Schedule>& starts) {
    return SolveExpansion(expansion_, &own_problem_, BoundScope::kOwnOrder, budget, work, starts);
  }

  Result<Solution> SolveInOrder(Bytes budget, const OrderedProblem& problem, const BestWork& work) {
    if (problem.order == own_order_) return SolveOwnOrder(budget, work, problem.starts);
    const Expansion expansion = ExpandTensorGraph(graph_, problem.order);
    BestProblem expanded(expansion.graph);
    return SolveExpansion(expansion, &expanded, BoundScope::kPlanOrder, budget, work,
                          problem.starts);
  }

  // `order`: what the order of the expansion is to the graph.
  Result<Solution> SolveExpansion(const Expansion& expansion, BestProblem* problem,
                                  BoundScope order, Bytes budget, const BestWork& work,
                                  const std::vector<Schedule>& starts) const {
    const auto scope_of = [&](BoundScope scope) {
      return scope == BoundScope::kOwnOrder ? order : scope;
    };
    BestOptions options;
    options.budget = budget.count();
    options.work = work;
    options.is_order_free = false;  // A schedule runs backward in the reverse of its forward order.
    if (enough_) options.enough = enough_->count();
    for (const Schedule& start : starts) options.starts.push_back(RunsOf(expansion, start));
    CKPLAN_ASSIGN_OR_RETURN(const BestOutcome outcome, SolveBest(problem, options));
    Solution solution{
        std::nullopt,          outcome.overhead, outcome.lower_bound,     outcome.is_optimal,
        outcome.is_infeasible, outcome.proof,    scope_of(outcome.scope), outcome.least_peak};
    solution.least_peak.scope = scope_of(outcome.least_peak.scope);
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
    if (enough_) options.enough = enough_->count();
    if (known.schedule) {
      Runs start = RunsOf(*any_order_, *known.schedule);
      // Gradients may be added up in another order in it.
      if (RunSimulator(any_order_->graph).Run(start).ok()) options.starts.push_back(start);
    }
    CKPLAN_ASSIGN_OR_RETURN(const BestOutcome outcome, SolveBest(&*any_order_problem_, options));
    Solution best = known;
    if (outcome.runs && (!known.schedule || outcome.overhead < known.overhead)) {
      const Schedule schedule = ScheduleOf(*any_order_, *outcome.runs);
      // The expanded graph may need less, see ExpandForAnyOrder.
      if (Simulator(graph_).Run(schedule).value().peak <= budget) {
        best = {schedule, outcome.overhead, 0, false, false};
      }
    }
    // A plan that adds up gradients in another order is none of the expanded graph's, and may be
    // below its bounds; what is proven of it is what was proven of its own order.
    const bool is_bound = !best.schedule || (outcome.any_order_bound <= best.overhead &&
                                             outcome.least_peak.bytes <= PeakOf(best));
    if (!is_bound) return best;
    best.lower_bound = outcome.any_order_bound;
    best.proof = outcome.any_order_proof;
    best.scope = BoundScope::kAnyOrder;
    best.least_peak = outcome.least_peak;
    best.is_optimal = best.schedule && best.overhead == best.lower_bound;
    best.is_infeasible = outcome.is_infeasible;
    return best;
  }

  Result<Solution> FindLeastInAnyOrder(const Solution& known) {
    BestOptions options;
    options.work = kQuickWork;
    CKPLAN_ASSIGN_OR_RETURN(
        const LeastPeak lower,
        FindLeastPeak(&*any_order_problem_, std::move(options), PeakOf(known).count()));
    Solution least = known;
    least.least_peak = lower.bound;
    if (!lower.runs) return least;
    const Schedule schedule = ScheduleOf(*any_order_, *lower.runs);
    const Simulation simulation = Simulator(graph_).Run(schedule).value();
    // The expanded graph may need less, see ExpandForAnyOrder.
    if (simulation.peak >= PeakOf(known)) return least;
    least = {schedule, simulation.overhead.count()};
    least.least_peak = lower.bound;
    return least;
  }

  Bytes PeakOf(const Solution& solution) const {
    return Simulator(graph_).Run(*solution.schedule).value().peak;
  }

  bool IsInOwnOrder(const Schedule& schedule) const { return ForwardOrder(schedule) == own_order_; }

  CurvePoint PointOf(const Solution& solution) const {
    return {PeakOf(solution), Cost(solution.overhead)};
  }

  Cost StepCost() const { return graph_.forward_cost() + graph_.backward_cost(); }

  // Orders of other algorithms' plans, and of `known`, that may lead to a better plan: the order of
  // the best of them, where that is better than `own`, and the one that needs least memory from the
  // start, where that is less than the graph's own order needs.
  std::vector<OrderedProblem> OthersWithin(Bytes budget, const Solution& own,
                                           const std::optional<Schedule>& known,
                                           SearchEffort effort) const {
    std::vector<Schedule> starts;
    const bool is_excluded = enough_ && own.lower_bound > enough_->count();
    const bool is_settled = own.is_optimal || own.is_infeasible || is_excluded;
    const OthersWork work{WorkOfOthers(effort), /*wants_own_order=*/!is_settled};
    for (Plan& plan : PlansOfOthers(graph_, request_, Budget::Of(budget), work, limits_)) {
      starts.push_back(std::move(plan.schedule));
    }
    PollStop();  // What others make of a stop is an error.
    if (known) starts.push_back(*known);
    std::optional<Order> cheapest;
    std::optional<Order> lightest;
    int64_t least_overhead = own.schedule ? own.overhead : std::numeric_limits<int64_t>::max();
    Bytes least_peak = PeakInOrder(graph_, own_order_);
    for (const Schedule& start : starts) {
      const Order order = ForwardOrder(start);
      const int64_t overhead = Simulator(graph_).Run(start).value().overhead.count();
      if (overhead < least_overhead) {
        least_overhead = overhead;
        cheapest = order;
      }
      if (order == own_order_) continue;
      const Bytes peak = PeakInOrder(graph_, order);
      if (peak < least_peak) {
        least_peak = peak;
        lightest = order;
      }
    }
    std::vector<OrderedProblem> problems;
    if (cheapest) problems.push_back({*cheapest, {}});
    if (lightest && lightest != cheapest) problems.push_back({*lightest, {}});
    for (OrderedProblem& problem : problems) {
      std::copy_if(starts.begin(), starts.end(), std::back_inserter(problem.starts),
                   [&](const Schedule& start) { return ForwardOrder(start) == problem.order; });
    }
    return problems;
  }

  Solution KeepingAll() const { return {KeepAllSchedule(own_order_), 0, 0, true}; }

  // The plan of the least peak by any other algorithm.
  Solution LeastOfOthers() const {
    Solution least = KeepingAll();
    for (const Plan& plan : PlansOfOthers(graph_, request_, {Budget::Kind::kMin, Bytes(0), 0},
                                          {WorkOfOthers(request_.effort)}, limits_)) {
      if (plan.figures.peak >= PeakOf(least)) continue;
      least = {plan.schedule, plan.figures.overhead.count()};
    }
    PollStop();  // What others make of a stop is an error.
    return least;
  }

  const TensorGraph& graph_;
  const PlanRequest& request_;
  const SolveLimits& limits_;
  const std::optional<Cost> enough_;
  const Order own_order_;
  const Expansion expansion_;           // In the graph's own order.
  BestProblem own_problem_;             // Of that.
  std::optional<Expansion> any_order_;  // If the request allows any.
  std::optional<BestProblem> any_order_problem_;
  std::vector<CurvePoint> curve_;
  std::optional<Solution> found_;
};

std::string GuaranteeOf(const TensorGraph& graph, const Solution& solution) {
  if (solution.overhead == 0) return "optimal: nothing runs twice";
  const std::string_view scope = solution.scope == BoundScope::kAnyOrder
                                     ? DescriptionOf(BoundScope::kAnyOrder)
                                     : DescriptionOf(BoundScope::kPlanOrder);
  if (solution.is_optimal) return fmt::format("optimal among plans {}", scope);
  const auto step = static_cast<double>((graph.forward_cost() + graph.backward_cost()).count());
  const auto gap = static_cast<double>(solution.overhead - solution.lower_bound);
  return fmt::format("heuristic: no plan {} saves more than {:.2f} % of a step", scope,
                     step > 0 ? 100 * gap / step : 0);
}

Plan PlanOf(const TensorGraph& graph, const PlanRequest& request, const Solution& solution,
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
  plan.figures.guarantee = GuaranteeOf(graph, solution);
  if (wants_least_peak && has_least_peak) {
    plan.figures.guarantee.insert(0, LeastPeakProven(solution.least_peak.scope));
  }
  AddCertificate({solution.proof, solution.scope, Cost(0), solution.least_peak, Bytes(0)},
                 &plan.figures);
  plan.figures.curve = std::move(curve);
  plan.figures.paper = {std::nullopt, plan.figures.peak, plan.figures.overhead};
  plan.figures.optimizer_state =
      OptimizerState(request.optimizer, graph.constants().parameter_gradients);
  const std::vector<std::string> faults = CheckPlan(graph, plan);
  CKPLAN_CHECK(faults.empty(), faults.front());
  return plan;
}

// The refusal names the least peak that can be reached, and says whether it is proven that nothing
// fits.
Result<Plan> Refuse(const TensorGraph& graph, const PlanRequest& request, const PeakBound& known,
                    BestSearch* search) {
  CKPLAN_ASSIGN_OR_RETURN(const Solution least, search->FindLeast());
  const Simulation simulation = Simulator(graph).Run(*least.schedule).value();
  Error error = Infeasible(graph, request, kBestAlgorithm, simulation.peak,
                           least.schedule->steps[simulation.peak_step]);
  const Bytes budget = ActivationBudget(graph, request);
  error.notes.push_back(WhatIsProven(known.bytes > budget ? known : least.least_peak, budget,
                                     ConstantsInBudget(graph, request)));
  return error;
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

std::string LeastPeakProven(BoundScope scope) {
  return fmt::format("no plan {} has a lower peak; ", DescriptionOf(scope));
}

std::string WhatIsProven(const PeakBound& bound, Bytes budget, Bytes constants) {
  const Bytes needed = bound.bytes + constants;
  return fmt::format("it is {}proven that no plan {} fits: each needs at least {} ({} bytes)",
                     bound.bytes > budget ? "" : "not ", DescriptionOf(bound.scope),
                     HumanBytes(needed), needed.count());
}

void AddCertificate(Certificate certificate, PlanFigures* figures) {
  certificate.gap = figures->overhead - *figures->lower_bound_cost;
  certificate.peak_gap = figures->peak - certificate.peak.bytes;
  figures->certificate = certificate;
}

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
      return Refuse(graph, request, solution->least_peak, &*search);
    });
  }
  // What was found is told whole.
  const StopsSuspended whole;
  if (!solution.ok() && is_stopped && search && search->found()) solution = *search->found();
  if (!solution.ok()) return std::move(solution).error();
  if (!solution->schedule) return MakeError(ErrorCode::kTimeout, "stopped");
  Plan plan = PlanOf(graph, request, *solution, search->CurveWith(*solution));
  if (is_stopped) plan.figures.guarantee.insert(0, kStoppedEarly);
  if (is_fixed) plan.request.budget = Budget::Of(bytes);
  return plan;
}

Result<PlanWithin> FindBestPlanWithin(const TensorGraph& graph, const PlanRequest& request,
                                      Cost enough, const SolveLimits& limits) {
  CKPLAN_RETURN_IF_ERROR(CheckSettings(request));
  const Bytes budget = ActivationBudget(graph, request);
  return UnlessStopped([&]() -> Result<PlanWithin> {
    const StopScope scope(limits.stop);
    BestSearch search(graph, request, limits, enough);
    CKPLAN_ASSIGN_OR_RETURN(const Solution solution, search.Solve(budget));
    PlanWithin found;
    if (!solution.schedule) return found;
    found.least_found = Cost(solution.overhead);
    if (*found.least_found > enough) return found;
    found.plan = PlanOf(graph, request, solution, {});
    found.plan->request.budget = Budget::Of(budget);
    return found;
  });
}

std::optional<Cost> OwnOrderBound(const TensorGraph& graph, Bytes budget) {
  const Expansion expansion = ExpandTensorGraph(graph);
  const RunProblem problem(expansion.graph);
  if (FindCertificates(problem).least_peak_any_plan > budget.count()) return std::nullopt;
  const Runs order = RequiredOwnOrder(problem);
  const size_t moment = RunSimulator(expansion.graph).Run(order).value().peak_step;
  const OneCut cut = CutAtMoment(problem, order, moment, budget.count());
  if (!cut.is_feasible) return std::nullopt;
  return Cost(cut.added_cost);
}

}  // namespace ckplan
