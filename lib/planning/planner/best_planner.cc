#include "lib/planning/planner/best_planner.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/stop.h"
#include "lib/planning/algorithms/best/best.h"
#include "lib/planning/algorithms/best/curve/trade_off_curve.h"
#include "lib/planning/planner/apply_constraints.h"
#include "lib/planning/planner/best_search.h"
#include "lib/planning/planner/guarantees.h"
#include "lib/planning/planner/joint_best.h"
#include "lib/planning/planner/peak_budget.h"
#include "lib/problem/schedule/expand.h"
#include "lib/problem/schedule/simulate.h"

namespace ckplan {
namespace {

std::string GuaranteeOf(const PlanProblem& problem, const BestSolution& solution) {
  if (solution.overhead == 0) return "optimal: nothing runs twice";
  const BoundScope scope =
      solution.scope == BoundScope::kAnyOrder ? BoundScope::kAnyOrder : BoundScope::kPlanOrder;
  return GuaranteeOf(problem, scope, solution.is_optimal, solution.overhead - solution.lower_bound);
}

Answer AnswerOf(const PlanProblem& problem, const BestSolution& solution,
                std::vector<CurvePoint> curve) {
  Answer answer;
  answer.schedule = *solution.schedule;
  answer.guarantee = GuaranteeOf(problem, solution);
  answer.is_optimal = solution.is_optimal;
  if (problem.minimizes_peak) {
    const Bytes peak = Simulator(problem.step).Run(answer.schedule).value().peak;
    const bool has_least_peak = peak == solution.least_peak.bytes;
    answer.is_optimal &= has_least_peak;
    if (has_least_peak) {
      answer.guarantee.insert(0, MinPeakGuarantee(solution.least_peak.scope, problem.request));
    }
  }
  if (problem.balance) MarkBalanced(&answer);
  answer.lower_bound = Cost(solution.lower_bound);
  answer.certificate =
      Certificate{solution.proof, solution.scope, Cost(0), solution.least_peak, Bytes(0)};
  answer.curve = std::move(curve);
  return answer;
}

// Searches for plans with a lower peak within the allowed added time, until they are proven not to
// exist or the search ends.
Result<Answer> ProveMinPeak(const PlanProblem& problem, Answer answer, const SolveLimits& limits) {
  constexpr int kMaxRounds = 4;
  BestUntil below_peak(problem.request, *problem.most_added, limits);
  Simulator simulator(problem.step);
  bool is_least_time = std::exchange(answer.is_optimal, false);
  for (int round = 0; round < kMaxRounds; ++round) {
    PlanProblem below = problem;
    below.most_added.reset();
    below.budget = simulator.Run(answer.schedule).value().peak - Bytes(1);
    CKPLAN_ASSIGN_OR_RETURN(std::optional<Answer> less,
                            below_peak.Solve(below, SearchDepth::kWhole));
    if (!less) return answer;
    if (simulator.Run(less->schedule).value().overhead > *problem.most_added) {
      if (*less->lower_bound <= *problem.most_added) return answer;
      answer.is_optimal = is_least_time;
      answer.guarantee =
          fmt::format("no plan {}{} that adds at most {:g} % has a lower peak; {}",
                      DescriptionOf(less->certificate->scope), ConstraintsSuffix(problem.request),
                      problem.request.added_time.percent, answer.guarantee);
      return answer;
    }
    std::swap(answer.curve, less->curve);
    answer = *std::move(less);
    is_least_time = std::exchange(answer.is_optimal, false);
  }
  return answer;
}

// The search for a forward graph's plan with the lowest peak. It doesn't depend on the problem's
// budget, nor on what a search within that finds, so the peak that a refusal names is a budget with
// a plan.
class MinPeakSearch {
 public:
  // Keeps references to both.
  MinPeakSearch(const PlanProblem& problem, const SolveLimits& limits)
      : problem_(problem), limits_(limits), request_(problem.request) {}

  BestSearch& search() {
    if (!search_) {
      PeakBudgetIn(&request_).kind = Budget::Kind::kMin;
      search_.emplace(problem_.step.forward(), request_, limits_);
    }
    return *search_;
  }

  // For a refusal of a budget far below its peak, the plan's time doesn't matter, unless the budget
  // is a memory: what the allocator wastes depends on the whole plan.
  Result<Answer> AnswerFor(Bytes budget) {
    const StopScope scope(limits_.stop);
    CKPLAN_ASSIGN_OR_RETURN(BestSolution solution, search().FindMin());
    if (request_.memory.is_given() || !search().IsFarBelow(budget, solution)) {
      CKPLAN_ASSIGN_OR_RETURN(solution, search().SolveForMinPeak());
    }
    PlanProblem for_min{problem_.step, request_};
    for_min.minimizes_peak = true;
    return AnswerOf(for_min, solution, {});
  }

 private:
  const PlanProblem& problem_;
  const SolveLimits& limits_;
  PlanRequest request_;
  std::optional<BestSearch> search_;
};

// Without a budget, there always is an answer. `least` finds out whether the budget is far too low.
Result<WithinBudget> Search(const PlanProblem& problem, const SolveLimits& limits,
                            MinPeakSearch* least) {
  if (problem.step.is_joint()) return SolveJointByBest(problem, limits);
  std::optional<BestSearch> search;
  const auto solve = [&]() -> Result<BestSolution> {
    const StopScope scope(limits.stop);
    search.emplace(problem.step.forward(), problem.request, limits);
    if (problem.budget) {
      return search->SolveUnlessFarBelow(*problem.budget,
                                         [&] { return least->search().FindMin(); });
    }
    if (problem.minimizes_peak) return search->SolveForMinPeak();
    if (problem.balance) return search->SolveForBalance(*problem.balance);
    return search->SolveWithinAddedTime(AllowedAddedTime(problem));
  };
  Result<BestSolution> solution = CatchStop(solve);
  const bool is_stopped = limits.stop.stop_requested();
  if (solution.ok() && !solution->schedule && !is_stopped) {
    return WithinBudget{std::nullopt, solution->least_peak};
  }
  // From here on, a stop must not discard the plan.
  const StopsSuspended whole;
  if (!solution.ok() && is_stopped && search && search->found()) solution = *search->found();
  if (!solution.ok()) return std::move(solution).error();
  if (!solution->schedule) return MakeError(ErrorCode::kTimeout, "stopped");
  Answer answer = AnswerOf(problem, *solution, search->CurveToShow(*solution));
  if (is_stopped) answer.guarantee.insert(0, kStoppedEarly);
  return WithinBudget{std::move(answer), solution->least_peak};
}

// Returns the plan of a joint graph with the lowest peak.
Result<Answer> SearchJointForMinPeak(const PlanProblem& problem, SearchEffort effort,
                                     const SolveLimits& limits) {
  PlanRequest request = problem.request;
  PeakBudgetIn(&request).kind = Budget::Kind::kMin;
  request.effort = effort;
  PlanProblem for_min{problem.step, request};
  for_min.minimizes_peak = true;
  for_min.is_recomputed = problem.is_recomputed;
  for_min.rules = problem.rules;
  for_min.offload = problem.offload;
  CKPLAN_ASSIGN_OR_RETURN(WithinBudget found, SolveJointByBest(for_min, limits));
  CKPLAN_CHECK(found.answer.has_value(), "there is a plan with the lowest peak");
  return *std::move(found.answer);
}

// Removes what a plan for its own peak proves about its time, because plans within a larger budget
// may be faster.
void ResetTimeProof(const PlanProblem& problem, Cost overhead, Answer* answer) {
  answer->is_optimal = overhead == Cost(0);
  answer->lower_bound = Cost(0);
  answer->certificate->proof = OverheadProof::kRunOnce;
  answer->certificate->scope = BoundScope::kAnyOrder;
  answer->guarantee =
      GuaranteeOf(problem, BoundScope::kAnyOrder, answer->is_optimal, overhead.count());
}

// Returns the plan of a joint graph with the lowest peak found, as MinPeakSearch does.
Result<Answer> FindJointMinPeak(const PlanProblem& problem, bool is_proven,
                                const SolveLimits& limits) {
  Simulator simulator(problem.step);
  std::optional<Answer> least;
  Bytes least_peak;
  // Without a proof, a request for the lowest peak might find a plan that fits.
  for (const SearchEffort effort : {SearchEffort::kQuick, problem.request.effort}) {
    CKPLAN_ASSIGN_OR_RETURN(Answer found, SearchJointForMinPeak(problem, effort, limits));
    const Bytes peak = simulator.Run(found.schedule).value().peak;
    if (!least || peak < least_peak) {
      least = std::move(found);
      least_peak = peak;
    }
    const bool fits = least_peak <= *problem.budget;
    if (fits || is_proven || effort == problem.request.effort) break;
  }
  return *std::move(least);
}

// Returns the plan with the lowest peak found after a search within the budget found no plan. Since
// it doesn't depend on the budget, it may even fit.
Result<Answer> FindMinPeakAnswer(const PlanProblem& problem, const PeakBound& known,
                                 MinPeakSearch* search, const SolveLimits& limits) {
  const bool is_proven = known.bytes > *problem.budget;
  CKPLAN_ASSIGN_OR_RETURN(Answer least, problem.step.is_joint()
                                            ? FindJointMinPeak(problem, is_proven, limits)
                                            : search->AnswerFor(*problem.budget));
  const Simulation simulation = Simulator(problem.step).Run(least.schedule).value();
  if (simulation.peak < *problem.budget) ResetTimeProof(problem, simulation.overhead, &least);
  if (simulation.peak > *problem.budget) {
    if (limits.stop.stop_requested()) return MakeError(ErrorCode::kTimeout, "stopped");
    least.note = ProofText(is_proven ? known : least.certificate->peak, problem);
  }
  return least;
}

}  // namespace

Result<Answer> SolveByBest(const PlanProblem& problem, const SolveLimits& limits) {
  MinPeakSearch least(problem, limits);
  CKPLAN_ASSIGN_OR_RETURN(WithinBudget found, Search(problem, limits, &least));
  if (!found.answer) {
    return CatchStop([&] { return FindMinPeakAnswer(problem, found.least_peak, &least, limits); });
  }
  Result<Answer> answer = *std::move(found.answer);
  if (!answer.ok() || !problem.most_added || limits.stop.stop_requested()) return answer;
  Result<Answer> proven = CatchStop([&] { return ProveMinPeak(problem, *answer, limits); });
  return proven.ok() ? proven : answer;
}

bool HasOneCurve(const TrainingStep& step, const PlanRequest& request) {
  return !step.is_joint() && step.micro_batches() == 1 && !HasConstraints(request);
}

Result<std::optional<Answer>> BestUntil::Solve(const PlanProblem& problem, SearchDepth depth) {
  const StopScope scope(limits_.stop);
  if (problem.step.is_joint()) return SolveJointByBestUntil(problem, enough_, limits_);
  const TensorGraph& graph = problem.step.forward();
  // Constraints give each problem a graph of its own.
  if (!search_ || HasConstraints(request_)) search_.emplace(graph, request_, limits_, enough_);
  CKPLAN_ASSIGN_OR_RETURN(const BestSolution solution, depth == SearchDepth::kCurve
                                                           ? search_->SolveByCurve(*problem.budget)
                                                           : search_->Solve(*problem.budget));
  if (!solution.schedule) return std::optional<Answer>();
  return std::optional(AnswerOf(problem, solution, {}));
}

Result<std::optional<Bytes>> BestUntil::PeakThatFits(
    Bytes most, const std::function<bool(const Schedule& schedule, Bytes peak)>& fits) {
  return CatchStop([&]() -> Result<std::optional<Bytes>> {
    const StopScope scope(limits_.stop);
    return search_ ? search_->PeakThatFits(most, fits) : std::nullopt;
  });
}

Result<std::vector<CurvePoint>> TraceCurveByBest(const PlanProblem& problem,
                                                 const SolveLimits& limits) {
  const StopScope scope(limits.stop);
  if (problem.step.is_joint()) return TraceJointCurveByBest(problem, limits);
  return BestSearch(problem.step.forward(), problem.request, limits)
      .TraceCurve(AllowedAddedTime(problem));
}

std::optional<Cost> OwnOrderBound(const TrainingStep& step, Bytes budget) {
  std::optional<Expansion> expansion;
  if (!step.is_joint()) expansion = ExpandTensorGraph(step.forward());
  const JointGraph& graph = expansion ? expansion->graph : step.joint();
  BestProblem problem(graph, {},
                      expansion ? OthersOf(step.forward(), *expansion) : OtherMicroBatches());
  problem.curve()->Prove(budget.count());
  if (problem.curve()->least_peak() > budget.count()) return std::nullopt;
  return Cost(problem.curve()->BoundWithin(budget.count()));
}

}  // namespace ckplan
