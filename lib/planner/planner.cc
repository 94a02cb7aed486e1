#include "lib/planner/planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <new>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include "lib/base/human_bytes.h"
#include "lib/base/stop.h"
#include "lib/plan/assemble.h"
#include "lib/plan/check.h"
#include "lib/plan/check_constraints.h"
#include "lib/plan/constraints.h"
#include "lib/plan/request_fields.h"
#include "lib/planner/best_planner.h"
#include "lib/planner/check_request.h"
#include "lib/planner/choice.h"
#include "lib/planner/containment.h"
#include "lib/planner/joint_planner.h"
#include "lib/planner/knob_search.h"
#include "lib/planner/obedience.h"
#include "lib/planner/peak_budget.h"
#include "lib/planner/points_by_budgets.h"
#include "lib/schedule/lower.h"
#include "lib/schedule/simulate.h"

namespace ckplan {
namespace {

// The request as plans hold it: the algorithm by its own name, budgets in bytes.
PlanRequest Settled(const TensorGraph& graph, const SolverInfo& info, const PlanRequest& request,
                    const Candidate& chosen) {
  PlanRequest settled = request;
  settled.algorithm = info.name;
  settled.total_budget = {};
  const std::optional<Bytes> paper_budget = chosen.outcome.paper.budget;
  if (request.paper_budget.is_given() && paper_budget) {
    settled.paper_budget = Budget::Of(*paper_budget);
  }
  const Budget& budget = PeakBudgetOf(request);
  if (!budget.is_given()) return settled;
  const bool is_min = budget.kind == Budget::Kind::kMin;
  settled.budget = Budget::Of(is_min ? chosen.simulation.peak : ActivationBudget(graph, request));
  return settled;
}

std::string StoppedEarly(const std::string& guarantee) {
  if (guarantee.starts_with(kStoppedEarly)) return guarantee;
  return std::string(kStoppedEarly) + guarantee;
}

std::string GuaranteeOf(const Candidate& chosen, bool was_stopped) {
  const std::string& guarantee = chosen.outcome.guarantee;
  return was_stopped ? StoppedEarly(guarantee) : guarantee;
}

// Whether a plan is optimal for what was asked. Without a budget on the peak that is the paper's
// own objective. Within one it is the least overhead, and a search over settings proves nothing of
// that unless nothing is recomputed; nor does it prove that a peak is the least. Where the setting
// is the budget, there is no search.
bool IsProven(const SolverInfo& info, const PlanRequest& request, const Candidate& chosen) {
  const Budget& budget = PeakBudgetOf(request);
  if (budget.kind == Budget::Kind::kMin || !chosen.outcome.is_optimal) return false;
  const bool is_setting = info.knob == Knob::Kind::kPeakLimit && request.uses_liveness &&
                          request.granularity == Granularity::kNode && !HasConstraints(request) &&
                          !request.pipeline;
  return !budget.is_given() || is_setting || chosen.simulation.overhead == Cost(0);
}

Result<Done> CheckDecisions(const SolverInfo& info, const PlanRequest& request) {
  CKPLAN_RETURN_IF_ERROR(CheckDecider(info, request));
  if (!request.decisions || !request.decisions->has_frees()) return Done{};
  if (request.uses_liveness) {
    return Error{ErrorCode::kUsage,
                 "the decisions say themselves when tensors are released, which they do only "
                 "without liveness",
                 {},
                 {"add", {{"liveness", ""}}}};
  }
  if (request.granularity == Granularity::kNode) return Done{};
  return MakeError(ErrorCode::kUsage,
                   "the decisions release tensors, which an order of layers cannot");
}

// Whether the algorithm plans in any order, and what of the request has no meaning then.
Result<Done> CheckOrder(const SolverInfo& info, const PlanRequest& request) {
  CKPLAN_RETURN_IF_ERROR(CheckTakesOrder(info, request));
  const bool is_of_nodes = request.uses_liveness && request.granularity == Granularity::kNode;
  if (request.order == StepOrder::kModel || is_of_nodes) return Done{};
  return MakeError(ErrorCode::kUsage, "steps in any order are those of nodes, with liveness");
}

Result<Done> CheckRequest(const TensorGraph& graph, const SolverInfo& info,
                          const PlanRequest& request) {
  if (graph.nodes().empty()) {
    return MakeError(ErrorCode::kInvalidInput,
                     fmt::format("\"{}\" has no node that makes an activation; there is nothing "
                                 "to plan",
                                 graph.name()));
  }
  CKPLAN_RETURN_IF_ERROR(CheckObjective(info, request));
  CKPLAN_RETURN_IF_ERROR(CheckSetting(info, request));
  CKPLAN_RETURN_IF_ERROR(CheckDecisions(info, request));
  CKPLAN_RETURN_IF_ERROR(CheckOrder(info, request));
  CKPLAN_RETURN_IF_ERROR(CheckConstraints(graph, request));
  return CheckOneBudget(request);
}

// The whole plan of a candidate, which has passed the checker.
Plan CheckedPlan(const SolverInfo& info, const TensorGraph& graph, const PlanRequest& request,
                 const Candidate& chosen, bool was_stopped) {
  Plan plan = AssemblePlan(graph, chosen.schedule, SegmentsOf(graph, chosen.outcome.strategy));
  plan.request = Settled(graph, info, request, chosen);
  plan.figures.paper = chosen.outcome.paper;
  plan.figures.setting = SettingOf(info, chosen);
  plan.figures.guarantee = GuaranteeOf(chosen, was_stopped);
  plan.figures.is_optimal = IsProven(info, request, chosen);
  plan.figures.optimizer_state = OptimizerState(request.optimizer, graph.optimized_bytes());
  const std::vector<std::string> faults = CheckPlan(graph, plan);
  CKPLAN_CHECK(faults.empty(), faults.front());
  return plan;
}

// For one of the two objectives. `least` becomes the least peak of which a refusal speaks.
Result<Plan> SolveAndCheck(const SolverInfo& info, const TensorGraph& graph,
                           const PlanRequest& request, const SolveLimits& limits,
                           std::optional<Bytes>* least) {
  PollStop();
  const View view(graph, request);
  CKPLAN_ASSIGN_OR_RETURN(const ChosenPlan choice, ChoosePlan(info, view, request, limits, least));
  const Candidate& chosen = choice.candidate;
  if (request.decisions) {
    CKPLAN_RETURN_IF_ERROR(CheckDecided(BrokenConstraints(graph, request, chosen.schedule)));
  }
  return CheckedPlan(info, graph, request, chosen, choice.was_stopped);
}

// One search's points, after one preparation.
Result<Done> AddPointsBy(const SolverInfo& info, const View& view, const PlanRequest& request,
                         int64_t budget_count, const SolveLimits& limits,
                         std::vector<CurvePoint>* points) {
  CKPLAN_ASSIGN_OR_RETURN(const std::unique_ptr<PreparedSolver> solver,
                          info.prepare(view.problem, limits));
  KnobSearch search(view, solver.get(), limits);
  const auto add = [&](const Candidate& candidate) {
    const Plan plan = CheckedPlan(info, view.graph, request, candidate, search.was_stopped());
    points->push_back({plan.figures.peak, plan.figures.overhead});
  };
  CKPLAN_ASSIGN_OR_RETURN(const Candidate* least, search.MinPeak());
  add(*least);
  const int64_t low = points->back().peak.count();
  const int64_t high = std::max(low, KeepAllPeak(view.graph).count());
  for (int64_t i = 1; i <= budget_count; ++i) {
    const Bytes budget(i == budget_count ? high : low + (high - low) / budget_count * i);
    CKPLAN_ASSIGN_OR_RETURN(const Candidate* best, search.BestWithin(budget));
    if (best != nullptr) add(*best);
  }
  return Done{};
}

Result<Done> AddPointsFor(Objective objective, const SolverInfo& info, const TensorGraph& graph,
                          const PlanRequest& request, int64_t budget_count,
                          const SolveLimits& limits, std::vector<CurvePoint>* points) {
  PlanRequest own = request;
  own.objective = objective;
  const View view(graph, own);
  CKPLAN_RETURN_IF_ERROR(AddPointsBy(info, view, own, budget_count, limits, points));
  for (const SolverInfo* smaller : ContainedIn(info.name)) {
    CKPLAN_RETURN_IF_ERROR(AddPointsBy(*smaller, view, own, budget_count, limits, points));
  }
  return Done{};
}

Result<Plan> SolveFor(Objective objective, const SolverInfo& info, const TensorGraph& graph,
                      const PlanRequest& request, const SolveLimits& limits,
                      std::optional<Bytes>* least) {
  PlanRequest own = request;
  own.objective = objective;
  return SolveAndCheck(info, graph, own, limits, least);
}

Error OutOfMemoryError(const SolverInfo& info, const SolveLimits& limits) {
  const std::string had = limits.memory
                              ? fmt::format("the memory limit of {}", HumanBytes(*limits.memory))
                              : std::string("there is");
  return Error{
      ErrorCode::kUnsupported,
      fmt::format("{} needs more memory than {}; another algorithm may need less", info.name, had),
      {},
      {"or raise", {{std::string(kMemoryLimitField), ""}}}};
}

bool IsOutOfMemory(const Error& error) {
  const std::vector<Remedy::Setting>& settings = error.remedy.settings;
  return !settings.empty() && settings.front().name == kMemoryLimitField;
}

// What `solve` returns, or an error where memory ends; what the algorithm held is then free again.
template <typename Solve>
Result<Plan> UnlessOutOfMemory(const SolverInfo& info, const SolveLimits& limits, Solve solve) {
  try {
    return solve();
  } catch (const std::bad_alloc&) {
    return OutOfMemoryError(info, limits);
  }
}

// The time-centric plan, or the memory-centric one where the former has none within the budget:
// Kusumoto et al. 2019, section 4.4. For the least peak, the plan that has less. A refusal speaks
// of the one that comes nearer.
Result<Plan> SolveForEitherObjective(const SolverInfo& info, const TensorGraph& graph,
                                     const PlanRequest& request, const SolveLimits& limits,
                                     std::optional<Bytes>* least) {
  std::optional<Bytes> least_by_time;
  std::optional<Bytes> least_by_memory;
  Result<Plan> by_time = SolveFor(Objective::kTime, info, graph, request, limits, &least_by_time);
  const bool wants_least_peak = PeakBudgetOf(request).kind == Budget::Kind::kMin;
  const bool is_settled = by_time.ok() ? !wants_least_peak : !least_by_time.has_value();
  *least = least_by_time;
  if (!info.takes_objective || request.setting || is_settled) return by_time;
  Result<Plan> by_memory = UnlessOutOfMemory(info, limits, [&] {
    return UnlessStopped([&] {
      const StopScope scope(limits.stop);
      PollStop();
      return SolveFor(Objective::kMemory, info, graph, request, limits, &least_by_memory);
    });
  });
  const bool is_stopped = !by_memory.ok() && by_memory.error().code == ErrorCode::kTimeout;
  // Not by this limit: then everything is to end, without a plan.
  if (is_stopped && !limits.stop.stop_requested()) throw Stopped();
  if (is_stopped || (!by_memory.ok() && IsOutOfMemory(by_memory.error()))) {
    if (!by_time.ok()) return by_memory;
    by_time->figures.guarantee = StoppedEarly(by_time->figures.guarantee);
    return by_time;
  }
  const auto is_better = [](const Plan& a, const Plan& b) {
    return std::pair(a.figures.peak, a.figures.overhead) <
           std::pair(b.figures.peak, b.figures.overhead);
  };
  if (by_memory.ok()) return !by_time.ok() || is_better(*by_memory, *by_time) ? by_memory : by_time;
  const bool is_nearer = !by_time.ok() && least_by_memory && *least_by_memory < *least_by_time;
  if (is_nearer) *least = least_by_memory;
  return is_nearer ? by_memory : by_time;
}

// By one algorithm's own search.
Result<Plan> MakePlanAlone(const SolverInfo& info, const TensorGraph& graph,
                           const PlanRequest& request, const SolveLimits& limits,
                           std::optional<Bytes>* least) {
  return UnlessOutOfMemory(info, limits, [&] {
    return UnlessStopped([&] {
      return request.objective == Objective::kAuto
                 ? SolveForEitherObjective(info, graph, request, limits, least)
                 : SolveAndCheck(info, graph, request, limits, least);
    });
  });
}

// Whether one of two plans within the budget is better than the other; names decide in the end.
bool IsBetter(const Plan& a, const Plan& b, bool wants_least_peak) {
  const auto rank = [&](const Plan& plan) {
    const int64_t overhead = plan.figures.overhead.count();
    const int64_t peak = plan.figures.peak.count();
    return wants_least_peak ? std::tuple(peak, overhead, plan.request.algorithm)
                            : std::tuple(overhead, peak, plan.request.algorithm);
  };
  return rank(a) < rank(b);
}

// A plan that an algorithm has made under the name of one that contains it, whose knob has no
// setting for it.
Plan OfSmaller(const SolverInfo& smaller, Plan plan) {
  PlanFigures& figures = plan.figures;
  const std::string setting =
      figures.setting ? fmt::format(" with {}", TextOf(*figures.setting)) : std::string();
  figures.guarantee = fmt::format("{}{}: {}", smaller.name, setting, figures.guarantee);
  figures.setting.reset();
  return plan;
}

// Replaces a plan, or a refusal that names `least`, by what an algorithm comes to that is contained
// in the one that has made it, where that is better.
Result<Done> TakeSmaller(const SolverInfo& info, const SolverInfo& smaller,
                         const TensorGraph& graph, const PlanRequest& request,
                         const SolveLimits& limits, Result<Plan>* made,
                         std::optional<Bytes>* least) {
  SolverInfo under_name = smaller;
  under_name.name = info.name;
  std::optional<Bytes> other_least;
  Result<Plan> other = MakePlanAlone(under_name, graph, request, limits, &other_least);
  if (other.ok()) {
    const bool wants_least_peak = PeakBudgetOf(request).kind == Budget::Kind::kMin;
    if (!made->ok() || IsBetter(*other, **made, wants_least_peak)) {
      *made = OfSmaller(smaller, *std::move(other));
    }
    return Done{};
  }
  if (other.error().code == ErrorCode::kTimeout) {
    if (!made->ok() || !limits.stop.stop_requested()) return std::move(other).error();
    (*made)->figures.guarantee = StoppedEarly((*made)->figures.guarantee);
  } else if (!made->ok() && other_least && *other_least < **least) {
    *least = other_least;
    *made = std::move(other);
  }
  return Done{};
}

Result<Plan> MakePlanBy(const SolverInfo& info, const TensorGraph& graph,
                        const PlanRequest& request, const SolveLimits& limits) {
  CKPLAN_RETURN_IF_ERROR(CheckRequest(graph, info, request));
  std::optional<Bytes> least;
  Result<Plan> made = MakePlanAlone(info, graph, request, limits, &least);
  const Budget& budget = PeakBudgetOf(request);
  if (!budget.is_given() || request.setting) return made;
  for (const SolverInfo* smaller : ContainedIn(info.name)) {
    const bool may_be_better =
        made.ok() ? budget.kind == Budget::Kind::kMin || made->figures.overhead > Cost(0)
                  : least.has_value();
    if (!may_be_better) break;
    CKPLAN_RETURN_IF_ERROR(TakeSmaller(info, *smaller, graph, request, limits, &made, &least));
  }
  return made;
}

// Algorithms that answer at once come first, so that a time limit cuts short only the searches.
std::vector<const SolverInfo*> FastFirst() {
  std::vector<const SolverInfo*> solvers;
  for (const SolverInfo& info : AllSolvers()) solvers.push_back(&info);
  std::stable_partition(solvers.begin(), solvers.end(),
                        [](const SolverInfo* info) { return !IsSlow(*info); });
  return solvers;
}

// How well an error explains that no algorithm has a plan: the error of the highest weight is
// shown. It is lowest where an algorithm merely does not accept such a request, or such a graph.
int WeightOf(ErrorCode code) {
  if (code == ErrorCode::kTimeout) return 2;
  return code == ErrorCode::kInfeasible ? 1 : 0;
}

// The best plan by any algorithm, or why there is none. `make_by` makes the plan of one of them.
template <typename MakeBy>
Result<Plan> BestPlan(const PlanRequest& request, MakeBy make_by, Shortage* shortage) {
  const bool wants_least_peak = PeakBudgetOf(request).kind == Budget::Kind::kMin;
  std::optional<Plan> best;
  std::optional<Error> failure;
  for (const SolverInfo* info : FastFirst()) {
    Result<Plan> plan = make_by(*info, request);
    if (plan.ok()) {
      if (!best || IsBetter(*plan, *best, wants_least_peak)) best = std::move(plan).value();
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

// `refuse` makes the error for want of budget, of who refuses and the plan of least peak.
template <typename MakeBy, typename Refuse>
Result<Plan> MakeAutoPlan(const PlanRequest& request, MakeBy make_by, Refuse refuse,
                          Shortage* shortage) {
  if (!PeakBudgetOf(request).is_given()) {
    return Error{ErrorCode::kUsage,
                 "auto takes the best plan within a limit on the peak, and none is given",
                 {},
                 {"add", {{"budget", "60%"}}}};
  }
  Result<Plan> best = BestPlan(request, make_by, shortage);
  if (best.ok() || best.error().code != ErrorCode::kInfeasible) return best;
  PlanRequest least = request;
  Budget& budget = request.total_budget.is_given() ? least.total_budget : least.budget;
  budget = {Budget::Kind::kMin, Bytes(0), 0};
  Shortage unreported;
  CKPLAN_ASSIGN_OR_RETURN(const Plan plan, BestPlan(least, make_by, &unreported));
  return refuse(fmt::format("auto, by {} at best,", plan.request.algorithm), plan);
}

}  // namespace

Result<Plan> MakePlan(const TensorGraph& graph, const PlanRequest& request,
                      const SolveLimits& limits, Shortage* shortage) {
  CKPLAN_ASSIGN_OR_RETURN(const SolverInfo* info, FindSolver(request.algorithm));
  const bool is_of_many = info->name == kAutoAlgorithm || info->name == kBestAlgorithm;
  if (!is_of_many) return MakePlanBy(*info, graph, request, limits);
  CKPLAN_RETURN_IF_ERROR(CheckRequest(graph, *info, request));
  if (info->name == kBestAlgorithm) return MakeBestPlan(graph, request, limits);
  const auto make_by = [&](const SolverInfo& one, const PlanRequest& asked) {
    return MakePlanBy(one, graph, asked, limits);
  };
  const auto refuse = [&](std::string_view who, const Plan& least) {
    return Infeasible(graph, request, who, least.figures.peak,
                      least.schedule.steps[static_cast<size_t>(least.peak->step)]);
  };
  Shortage unreported;
  return MakeAutoPlan(request, make_by, refuse, shortage != nullptr ? shortage : &unreported);
}

namespace {

Result<Plan> MakePlanOfJoint(const Source& source, const PlanRequest& request,
                             const SolveLimits& limits, Shortage* shortage) {
  const std::optional<ForwardView> forward = ForwardViewOf(source);
  CKPLAN_ASSIGN_OR_RETURN(const SolverInfo* info, FindSolver(request.algorithm));
  if (info->name != kAutoAlgorithm) return MakeJointPlan(*source.joint, request, limits, forward);
  const auto make_by = [&](const SolverInfo& one, const PlanRequest& asked) {
    PlanRequest own = asked;
    own.algorithm = one.name;
    return UnlessOutOfMemory(one, limits,
                             [&] { return MakeJointPlan(*source.joint, own, limits, forward); });
  };
  const auto refuse = [&](std::string_view who, const Plan& least) {
    return JointInfeasible(*source.joint, request, who, least);
  };
  Shortage unreported;
  return MakeAutoPlan(request, make_by, refuse, shortage != nullptr ? shortage : &unreported);
}

}  // namespace

bool CanPlan(const SolverInfo& info, const Source& source) {
  const bool needs_nodes = !DecidesOnRuns(info) && info.name != kAutoAlgorithm;
  return !source.joint || !needs_nodes || ForwardViewOf(source).has_value();
}

Result<Plan> MakePlan(const Source& source, const PlanRequest& request, const SolveLimits& limits,
                      Shortage* shortage) {
  // Checks of the request and refusals look at the graph as well, and may be stopped.
  CKPLAN_ASSIGN_OR_RETURN(Plan plan, UnlessStopped([&] {
                            return source.joint ? MakePlanOfJoint(source, request, limits, shortage)
                                                : MakePlan(source.graph, request, limits, shortage);
                          }));
  for (const RequestField& field : RequestFields()) {
    if (field.part != RequestField::Part::kPlan) CopyField(field, source.request, &plan.request);
  }
  plan.model = source.identity;
  return plan;
}

Result<std::vector<CurvePoint>> PointsByBudgets(const TensorGraph& graph,
                                                const PlanRequest& request, int64_t budget_count,
                                                const SolveLimits& limits) {
  CKPLAN_ASSIGN_OR_RETURN(const SolverInfo* info, FindSolver(request.algorithm));
  CKPLAN_RETURN_IF_ERROR(CheckRequest(graph, *info, request));
  if (info->name == kBestAlgorithm) return TraceBestCurve(graph, request, limits);
  CKPLAN_CHECK(info->prepare != nullptr, "an algorithm of the registry can be prepared");
  std::vector<Objective> objectives = {request.objective};
  if (request.objective == Objective::kAuto) {
    objectives = {Objective::kTime};
    if (info->takes_objective) objectives.push_back(Objective::kMemory);
  }
  std::vector<CurvePoint> points;
  for (const Objective objective : objectives) {
    const Result<Done> added = UnlessStopped([&] {
      const StopScope scope(limits.stop);
      PollStop();
      return AddPointsFor(objective, *info, graph, request, budget_count, limits, &points);
    });
    if (!added.ok()) return added.error();
  }
  return points;
}

}  // namespace ckplan
