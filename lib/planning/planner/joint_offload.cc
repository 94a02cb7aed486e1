#include <iterator>
#include <memory>
#include <optional>
#include <stop_token>
#include <utility>
#include <vector>

#include "lib/base/check.h"
#include "lib/base/stop.h"
#include "lib/planning/algorithms/best/best.h"
#include "lib/planning/algorithms/best/offload_best.h"
#include "lib/planning/algorithms/best/trade_off.h"
#include "lib/planning/plan/added_time.h"
#include "lib/planning/planner/best_search.h"
#include "lib/planning/planner/guarantees.h"
#include "lib/planning/planner/joint_best.h"
#include "lib/planning/planner/peak_budget.h"
#include "lib/planning/planner/registry.h"
#include "lib/planning/planner/solve.h"
#include "lib/problem/schedule/simulate.h"

namespace ckplan {
namespace {

// The search for the lowest peak stops within this fraction of the keep-all peak.
constexpr int64_t kMinParts = 1024;

std::vector<Schedule> SchedulesOf(const BestOutcome& outcome) {
  if (!outcome.runs) return {};
  return {ScheduleOfRuns(*outcome.runs)};
}

OffloadEffort OffloadEffortOf(SearchEffort effort) {
  switch (effort) {
    case SearchEffort::kQuick:
      return kQuickOffloadEffort;
    case SearchEffort::kNormal:
      return kNormalOffloadEffort;
    case SearchEffort::kThorough:
      return kThoroughOffloadEffort;
  }
  return kNormalOffloadEffort;
}

OffloadLimits OffloadLimitsOf(const PlanProblem& problem) {
  const OffloadTerms& terms = *problem.offload;
  OffloadLimits limits;
  limits.link = terms.link;
  if (problem.budget) limits.budget = problem.budget->count();
  if (terms.host_budget) limits.host_budget = terms.host_budget->count();
  limits.may_move.assign(terms.may_move.begin(), terms.may_move.end());
  limits.rules = problem.rules;
  return limits;
}

// Returns the plans within the budget from the algorithms that offload values by greedy rules.
std::vector<Schedule> SchedulesOfGreedyOffload(const PlanProblem& problem,
                                               const SolveLimits& limits) {
  std::vector<Schedule> schedules;
  for (const SolverInfo& info : OffloadSolvers()) {
    Result<Answer> answer = CatchStop([&] { return SolveWith(info, problem, limits); });
    if (answer.ok()) schedules.push_back(std::move(answer->schedule));
  }
  return schedules;
}

// Searches for plans within the budget that can offload values to the host. Each search continues
// from the results before it, so more effort never makes a plan worse.
class OffloadBudgetSearch {
 public:
  // The plan is at least as good as those of `known` that fit the budget. A plan that adds at most
  // `enough` ends the search.
  OffloadBudgetSearch(const PlanProblem& problem, const SolveLimits& limits,
                      std::vector<Schedule> known, std::optional<int64_t> enough = std::nullopt)
      : problem_(problem),
        stop_(limits.stop),
        limits_(OffloadLimitsOf(problem)),
        starts_(SchedulesOfGreedyOffload(problem, limits)),
        enough_(enough) {
    std::move(known.begin(), known.end(), std::back_inserter(starts_));
  }

  Result<Done> Search(SearchEffort effort) {
    OffloadEffort work = OffloadEffortOf(effort);
    work.enough = enough_;
    CKPLAN_ASSIGN_OR_RETURN(OffloadOutcome found,
                            SolveWithOffload(problem_.step.joint(), limits_, work, starts_,
                                             found_ ? &*found_ : nullptr));
    found_ = std::move(found);
    return Done{};
  }

  Result<Done> SearchUpTo(SearchEffort last) {
    for (const SearchEffort effort : kEfforts) {
      CKPLAN_RETURN_IF_ERROR(Search(effort));
      if (effort == last || IsFinal()) break;
    }
    return Done{};
  }

  void AddStart(Schedule start) { starts_.push_back(std::move(start)); }

  // Tells whether more effort can't improve the result.
  bool IsFinal() const {
    const bool is_enough = enough_ && AddedTime() && *AddedTime() <= *enough_;
    return is_enough || found_->is_optimal || stop_.stop_requested();
  }

  // Returns the added time, if a plan fits.
  std::optional<int64_t> AddedTime() const {
    return found_->best ? std::optional(found_->best->overhead) : std::nullopt;
  }

  // Returns the best plan or, if none fits, the one with the lowest peak.
  Answer Found() const {
    const std::optional<OffloadPlan>& plan = found_->best ? found_->best : found_->nearest;
    CKPLAN_CHECK(plan.has_value(), "the graph's own order is among the starts");
    const int64_t gap = plan->overhead - found_->lower_bound;
    Answer answer{plan->schedule, found_->is_optimal,
                  GuaranteeOf(problem_, found_->scope, found_->is_optimal, gap)};
    answer.lower_bound = Cost(found_->lower_bound);
    answer.certificate =
        Certificate{found_->proof, found_->scope, Cost(0), found_->least_peak, Bytes(0)};
    return answer;
  }

 private:
  const PlanProblem& problem_;
  const std::stop_token stop_;
  const OffloadLimits limits_;
  std::vector<Schedule> starts_;
  const std::optional<int64_t> enough_;
  std::optional<OffloadOutcome> found_;  // The result of the searches so far.
};

Result<Answer> SolveWithKnown(std::vector<Schedule> known, const PlanProblem& problem,
                              const SolveLimits& limits,
                              std::optional<int64_t> enough = std::nullopt) {
  OffloadBudgetSearch search(problem, limits, std::move(known), enough);
  CKPLAN_RETURN_IF_ERROR(search.SearchUpTo(problem.request.effort));
  return search.Found();
}

// Searches for the plan of the same request without a link.
class OnDeviceSearch {
 public:
  OnDeviceSearch(const PlanProblem& problem, const SolveLimits& limits)
      : problem_(problem), limits_(limits), shared_(problem.step.joint(), problem.is_recomputed) {
    options_.budget = problem.budget.value().count();
  }

  // Efforts must increase between calls.
  Result<Done> Search(SearchEffort effort) {
    options_.work = WorkOf(effort);
    CKPLAN_ASSIGN_OR_RETURN(BestOutcome best,
                            SolveBestAt(effort, problem_, &shared_, options_, limits_));
    best_ = std::move(best);
    options_.before = &best_;
    is_final_ = ckplan::IsFinal(options_, best_, limits_);
    return Done{};
  }

  // Does the same, but stops once it is proven that every plan without copies adds at least
  // `added`.
  Result<Done> SearchBelow(int64_t added, SearchEffort effort) {
    BestOptions proof = options_;
    proof.enough = added - 1;
    proof.work = WorkOf(effort);
    proof.work.moves = 0;
    is_final_ = best_.any_order_bound >= added;
    if (!is_final_) {
      CKPLAN_ASSIGN_OR_RETURN(const BestOutcome less, SolveBest(&shared_, proof));
      is_final_ = less.any_order_bound >= added;
    }
    return is_final_ ? Done{} : Search(effort);
  }

  // Tells whether more effort can't improve the result.
  bool IsFinal() const { return is_final_; }
  const BestOutcome& best() const { return best_; }

 private:
  const PlanProblem& problem_;
  const SolveLimits& limits_;
  BestProblem shared_;
  BestOptions options_;
  BestOutcome best_;  // The result of the searches so far.
  bool is_final_ = false;
};

// Searches for plans within other budgets.
class OffloadPlanSearch : public PlanSearch {
 public:
  explicit OffloadPlanSearch(const PlanProblem& problem)
      : graph_(problem.step.joint()),
        simulator_(problem.step),
        limits_(OffloadLimitsOf(problem)),
        effort_(problem.request.effort == SearchEffort::kQuick ? kBriefOffloadEffort
                                                               : kQuickOffloadEffort),
        bound_{Bytes(LargestNeed(graph_)), PeakProof::kWorkingSet, BoundScope::kAnyOrder} {}

  // The best lower bound on the peak that the searches have proven.
  const PeakBound& bound() const { return bound_; }
  int64_t LeastPeak() override { return bound_.bytes.count(); }

  Result<Found> Find(int64_t budget, std::optional<int64_t> enough,
                     const Schedule* start) override {
    PollStop();
    limits_.budget = budget;
    effort_.enough = enough;
    std::vector<Schedule> starts;
    if (start != nullptr) starts.push_back(*start);
    CKPLAN_ASSIGN_OR_RETURN(const OffloadOutcome outcome,
                            SolveWithOffload(graph_, limits_, effort_, starts));
    if (outcome.least_peak.bytes > bound_.bytes) bound_ = outcome.least_peak;
    Found found{std::nullopt, bound_.bytes.count()};
    if (outcome.best) found.plan = outcome.best->schedule;
    return found;
  }

  PricedPlan Priced(Schedule schedule) override {
    const Simulation simulation = simulator_.Run(schedule).value();
    return {std::move(schedule), simulation.peak.count(), simulation.overhead.count()};
  }

 private:
  const JointGraph& graph_;
  Simulator simulator_;
  OffloadLimits limits_;
  OffloadEffort effort_;
  PeakBound bound_;
};

// Searches for plans within several budgets, starting from a known plan and keep-all, and stores
// them.
class OffloadCurve {
 public:
  OffloadCurve(const PlanProblem& problem, const Schedule& known)
      : OffloadCurve(problem, known, std::make_unique<OffloadPlanSearch>(problem)) {}

  TradeOff& plans() { return plans_; }
  const PeakBound& bound() const { return search_->bound(); }

  // Returns a plan of no higher peak that adds no more time. May run a longer search.
  Result<Answer> SolveFrom(const PricedPlan& plan, const SolveLimits& limits) const {
    PlanProblem within = problem_;
    within.minimizes_peak = false;
    within.most_added.reset();
    within.balance.reset();
    within.budget = Bytes(plan.peak);
    return SolveWithKnown({plan.schedule}, within, limits);
  }

 private:
  OffloadCurve(const PlanProblem& problem, const Schedule& known,
               std::unique_ptr<OffloadPlanSearch> search)
      : problem_(problem),
        search_(search.get()),
        plans_(std::move(search),
               ScheduleOfRuns(problem.Constrain(OwnOrder(problem.step.joint())))) {
    plans_.Add(known);
  }

  const PlanProblem& problem_;
  const OffloadPlanSearch* const search_;
  TradeOff plans_;
};

// Searches for the plan with the lowest peak that adds at most `most_added`, then for the other
// points that the user sees (lib/planning/plan/added_time.h).
Result<Done> SearchShownPoints(Cost most_added, Cost step, TradeOff* trade_off) {
  CKPLAN_RETURN_IF_ERROR(trade_off->SearchWithin(most_added.count()));
  for (const double percent : kShownAddedPercents) {
    CKPLAN_RETURN_IF_ERROR(
        trade_off->SearchWithin(MostAdded(percent, step).count(), TradeOff::kNear));
  }
  return trade_off->SearchMin(TradeOff::kNear);
}

// Calls `search`, and keeps its results after a stop.
template <typename Search>
Result<Done> KeepOnStop(const Search& search) {
  try {
    return search();
  } catch (const Stopped&) {
    return Done{};
  }
}

// Returns the plan with the lowest peak found, and the least time found for that peak.
Result<Answer> SolveOffloadForMinPeak(const PlanProblem& problem, const Schedule& known,
                                      const SolveLimits& limits) {
  OffloadCurve curve(problem, known);
  CKPLAN_RETURN_IF_ERROR(KeepOnStop([&] { return curve.plans().SearchMin(kMinParts); }));
  const PricedPlan& least = curve.plans().Least();
  CKPLAN_ASSIGN_OR_RETURN(Answer answer, curve.SolveFrom(least, limits));
  PeakBound& bound = answer.certificate->peak;
  if (curve.bound().bytes > bound.bytes) bound = curve.bound();
  const bool is_least = bound.bytes.count() == least.peak;
  answer.is_optimal &= is_least;
  if (is_least) answer.guarantee.insert(0, MinPeakGuarantee(bound.scope, problem.request));
  return answer;
}

// Returns the plan with the best balance or, without a balance, the plan with the lowest peak found
// that adds no more than a plan without a budget may.
Result<Answer> SolveOffloadOnCurve(const PlanProblem& problem, const Schedule& known,
                                   const SolveLimits& limits) {
  OffloadCurve curve(problem, known);
  TradeOff& plans = curve.plans();
  const Cost most_added = AllowedAddedTime(problem);
  const auto search = [&]() -> Result<Done> {
    if (!problem.balance) return SearchShownPoints(most_added, problem.step.cost(), &plans);
    CKPLAN_RETURN_IF_ERROR(plans.SearchEvenly(kCurveBudgets));
    CKPLAN_RETURN_IF_ERROR(plans.SearchMin(TradeOff::kNear));
    return plans.SearchForBalance(*problem.balance);
  };
  CKPLAN_RETURN_IF_ERROR(KeepOnStop(search));
  CKPLAN_ASSIGN_OR_RETURN(
      Answer answer,
      curve.SolveFrom(problem.balance ? plans.At(problem.balance->BestOf(plans.Points()))
                                      : plans.LeastWithin(most_added.count()),
                      limits));
  if (problem.balance) {
    MarkBalanced(&answer);
    return answer;
  }
  std::vector<CurvePoint> points = plans.Points();
  const Simulation own = Simulator(problem.step).Run(answer.schedule).value();
  points.push_back({own.peak, own.overhead});
  answer.curve = ShownPoints(FrontOf(std::move(points)), problem.step.cost());
  return answer;
}

// Returns the best plan within the budget that can offload values to the host or, if none fits, the
// plan with the lowest peak. It is at least as good as the plan for the same request without a
// link: after a quick search for a plan without copies, skip the longer one only if no such plan
// can add less time.
Result<Answer> SolveBestOffload(const PlanProblem& problem, const SolveLimits& limits) {
  OnDeviceSearch staying(problem, limits);
  CKPLAN_RETURN_IF_ERROR(staying.Search(SearchEffort::kQuick));
  OffloadBudgetSearch moving(problem, limits, SchedulesOf(staying.best()));
  for (const SearchEffort effort : kEfforts) {
    const bool is_first = effort == SearchEffort::kQuick;
    if (is_first || !moving.IsFinal()) CKPLAN_RETURN_IF_ERROR(moving.Search(effort));
    if (!is_first && !staying.IsFinal()) {
      CKPLAN_RETURN_IF_ERROR(moving.AddedTime() ? staying.SearchBelow(*moving.AddedTime(), effort)
                                                : staying.Search(effort));
      const BestOutcome& best = staying.best();
      if (best.runs && (!moving.AddedTime() || best.overhead < *moving.AddedTime())) {
        moving.AddStart(ScheduleOfRuns(*best.runs));
        CKPLAN_RETURN_IF_ERROR(moving.Search(effort));
      }
    }
    const bool is_final = moving.IsFinal() && staying.IsFinal();
    if (is_final || effort == problem.request.effort || limits.stop.stop_requested()) break;
  }
  return moving.Found();
}

}  // namespace

Result<WithinBudget> SolveOffloadWithin(const PlanProblem& problem, const SolveLimits& limits) {
  CKPLAN_ASSIGN_OR_RETURN(Answer answer, SolveBestOffload(problem, limits));
  WithinBudget found{std::nullopt, answer.certificate->peak};
  const Bytes peak = Simulator(problem.step).Run(answer.schedule).value().peak;
  if (peak <= *problem.budget) found.answer = std::move(answer);
  return found;
}

Result<Answer> SolveOffloadWithoutBudget(const Schedule& without, const PlanProblem& problem,
                                         const SolveLimits& limits) {
  return problem.minimizes_peak ? SolveOffloadForMinPeak(problem, without, limits)
                                : SolveOffloadOnCurve(problem, without, limits);
}

Result<std::optional<Answer>> SolveOffloadUntil(const PlanProblem& problem, Cost enough,
                                                const SolveLimits& limits) {
  BestProblem shared(problem.step.joint(), problem.is_recomputed);
  BestOptions options;
  options.budget = problem.budget.value().count();
  options.enough = enough.count();
  options.work = WorkOf(SearchEffort::kQuick);
  CKPLAN_ASSIGN_OR_RETURN(const BestOutcome without,
                          SolveBestAt(SearchEffort::kQuick, problem, &shared, options, limits));
  CKPLAN_ASSIGN_OR_RETURN(Answer answer,
                          SolveWithKnown(SchedulesOf(without), problem, limits, enough.count()));
  const Bytes peak = Simulator(problem.step).Run(answer.schedule).value().peak;
  if (peak > *problem.budget) return std::optional<Answer>();
  return std::optional(std::move(answer));
}

Result<std::vector<CurvePoint>> TraceOffloadCurve(const Schedule& without,
                                                  const PlanProblem& problem) {
  OffloadCurve curve(problem, without);
  TradeOff& plans = curve.plans();
  CKPLAN_RETURN_IF_ERROR(SearchShownPoints(AllowedAddedTime(problem), problem.step.cost(), &plans));
  CKPLAN_RETURN_IF_ERROR(plans.SearchEvenly(kCurveBudgets));
  return plans.Points();
}

}  // namespace ckplan
