#include "lib/planning/planner/joint_search.h"

#include <span>
#include <utility>

#include "lib/planning/planner/best_search.h"
#include "lib/problem/schedule/simulate.h"

namespace ckplan {
namespace {

bool IsEnough(const BestOptions& options, const BestOutcome& best) {
  return options.enough && best.runs && best.overhead <= *options.enough;
}

}  // namespace

WarmStartLimits WarmStartLimitsFor(SearchEffort effort) {
  return {WarmStartWork(effort), /*include_own_order=*/true,
          /*include_slow=*/effort != SearchEffort::kQuick};
}

Result<BestOutcome> SolveBestAt(SearchEffort effort, const PlanProblem& problem,
                                BestProblem* shared, const BestOptions& options,
                                const SolveLimits& limits) {
  CKPLAN_ASSIGN_OR_RETURN(BestOutcome best, SolveBest(shared, options));
  if (best.is_optimal || best.is_infeasible || limits.stop.stop_requested()) return best;
  if (IsEnough(options, best)) return best;
  Simulator simulator(problem.step);
  BestOptions again = options;
  const size_t known = again.starts.size();
  for (const Schedule& other : WarmStarts(problem, WarmStartLimitsFor(effort), limits)) {
    const int64_t overhead = simulator.Run(other).value().overhead.count();
    if (!best.runs || overhead < best.overhead) again.starts.push_back(RunsOf(other));
  }
  if (again.starts.size() == known) return best;
  // Programs and cuts would only find the same plans, but annealing continues from a better plan.
  again.work.programs = again.work.any_order = 0;
  again.before = &best;
  return SolveBest(shared, again);
}

bool IsFinal(const BestOptions& options, const BestOutcome& best, const SolveLimits& limits) {
  const bool is_optimal_in_any_order = best.runs && best.overhead <= best.any_order_bound;
  return is_optimal_in_any_order || best.is_infeasible || limits.stop.stop_requested() ||
         IsEnough(options, best);
}

Result<BestOutcome> SolveBestWithin(const PlanProblem& problem, BestProblem* shared,
                                    BestOptions options, const SolveLimits& limits, size_t done) {
  BestOutcome best;
  for (const SearchEffort effort : std::span(kEfforts).subspan(done)) {
    options.work = WorkOf(effort);
    CKPLAN_ASSIGN_OR_RETURN(best, SolveBestAt(effort, problem, shared, options, limits));
    options.before = &best;
    if (IsFinal(options, best, limits) || effort == problem.request.effort) break;
  }
  return best;
}

}  // namespace ckplan
