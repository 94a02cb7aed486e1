// Plans of the papers' algorithms for one budget, as starts of `best`.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/planning/plan/request.h"
#include "lib/planning/plan/solver.h"
#include "lib/planning/planner/plan_problem.h"
#include "lib/problem/schedule/schedule.h"

namespace ckplan {

// Returns the work that the algorithms may do together (lib/base/stop.h): by effort, about
// 0.05, 0.25 and 10 seconds.
int64_t WarmStartWork(SearchEffort effort);

struct WarmStartLimits {
  int64_t work = 0;
  bool wants_own_order = true;  // Includes algorithms that keep the graph's own order.
  bool wants_slow = true;       // Includes algorithms that do not answer at once.
};

// Returns the schedules of all algorithms of the registry that find one within the problem's
// budget. Algorithms that answer at once come first. When the work is spent, the current algorithm
// returns the best plan so far, and the remaining ones are left out. This happens only on graphs on
// which searches take long; on all others, `best` starts from exactly the schedules that the
// algorithms find.
std::vector<Schedule> WarmStarts(const PlanProblem& problem, const WarmStartLimits& work,
                                 const SolveLimits& limits);

}  // namespace ckplan
