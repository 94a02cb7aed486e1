// Plans of the papers' algorithms for one budget, as starts for `best`.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/planning/plan/request.h"
#include "lib/planning/plan/solver.h"
#include "lib/planning/planner/plan_problem.h"
#include "lib/problem/schedule/schedule.h"

namespace ckplan {

// Returns the work that all algorithms together may do (lib/base/stop.h): about 0.05, 0.25 or 10
// seconds, by effort.
int64_t WarmStartWork(SearchEffort effort);

struct WarmStartLimits {
  int64_t work = 0;
  bool include_own_order = true;  // Run algorithms that keep the graph's own order.
  bool include_slow = true;       // Run slow algorithms.
};

// Returns the schedules of all registered algorithms that find one within the problem's budget.
// Fast algorithms run first. When the work is spent, the current algorithm returns its best plan so
// far, and the rest are skipped. That only happens on graphs where searches take long; on all
// others, `best` starts from exactly the plans of the algorithms.
std::vector<Schedule> WarmStarts(const PlanProblem& problem, const WarmStartLimits& work,
                                 const SolveLimits& limits);

}  // namespace ckplan
