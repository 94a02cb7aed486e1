// Plans of the papers' algorithms for one budget, as starts of `best`.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/plan/request.h"
#include "lib/plan/solver.h"
#include "lib/planner/plan_problem.h"
#include "lib/schedule/schedule.h"

namespace ckplan {

// What the algorithms may take together (lib/base/work_limit.h): about a twentieth of a second, a
// second and ten.
int64_t WorkOfOthers(SearchEffort effort);

struct OthersWork {
  int64_t work = 0;
  bool wants_own_order = true;  // Also by algorithms that keep the graph's own order.
  bool wants_slow = true;       // Also by those that do not answer at once.
};

// The schedules by all algorithms of the registry that have one within the problem's budget. Those
// that answer at once come first; when the work is spent, the one at hand gives the best plan that
// it has found, and what remains is left out. That is so only on graphs on which searches take
// long; on all others `best` starts from the very schedules that the algorithms find.
std::vector<Schedule> SchedulesOfOthers(const PlanProblem& problem, const OthersWork& work,
                                        const SolveLimits& limits);

}  // namespace ckplan
