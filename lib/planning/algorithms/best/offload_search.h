// Searches for plans that recompute some values and copy others to the host and back: anneals from
// several starts, and from the best of what this finds again.
//
// Guarantee  the plan is valid and within both budgets; there may be none.
// Cost       limited by `work`, so that the same request gives the same plan.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "lib/planning/algorithms/best/offload_annealing.h"
#include "lib/problem/graph/joint_graph.h"
#include "lib/problem/runs/run_problem.h"
#include "lib/problem/runs/runs_and_loads.h"
#include "lib/problem/schedule/schedule.h"

namespace ckplan {

// Combines choices: each value made before some position of the order is treated as one choice
// says, and each later one as another says.
//
// Least cuts find extremes. In a network of equal layers they treat all layers alike, so one choice
// takes too much memory and the next takes too much time; what fits best treats some layers in one
// way and the others in another way.
//
// Cost  counted in steps of the sequences that are tried.

// What a sequence takes. Its score is its time, with a charge for what it takes above the budgets:
// one percent of a step for one percent of a budget.
struct OffloadMeasures {
  int64_t peak = 0;
  int64_t time = 0;
  bool fits = false;
  double score = 0;
};
OffloadMeasures MeasureOffload(const RunProblem& problem, const OffloadLimits& limits,
                               const RunsAndLoads& steps);

// Returns the sequences of the choices and of their best combinations. All choices must have the
// same order and moment. `work` limits the steps of all combinations that are tried.
std::vector<RunsAndLoads> CrossChoices(const RunProblem& problem, const OffloadLimits& limits,
                                       const std::vector<OffloadChoice>& choices, int64_t work);

struct OffloadWork {
  int64_t crossed_per_op = 0;  // The work of CrossChoices, per operation.
  int64_t steps_per_op = 0;    // OffloadAnnealOptions::work of all chains together, per operation.
  int starts = 0;              // Chains from different starts.
  int rounds = 0;              // Chains after these, from the best plans so far. They do half of
                               // the work.
};

// The last three take about 0.3, 3 and 20 seconds for 500 operations, each in addition to those
// before.
inline constexpr OffloadWork kGlanceOffload = {100, 5'000, 1, 0};
inline constexpr OffloadWork kQuickOffload = {300, 30'000, 2, 1};
inline constexpr OffloadWork kNormalOffload = {2'000, 250'000, 3, 1};
inline constexpr OffloadWork kThoroughOffload = {4'000, 2'000'000, 8, 4};

struct OffloadSearchOptions {
  OffloadWork work = kNormalOffload;
  // Known plans that obey the rules, with at most one copy back of each value.
  std::vector<Schedule> starts;
  // Plans of an earlier search. Only the last chain may begin from them, so that the others find
  // different ones.
  std::vector<Schedule> found;
  std::vector<OffloadChoice> choices;  // Such as those of bounds. Their plans may be no good.
  // A plan that adds no more ends the search: it is at a lower bound, or good enough.
  int64_t enough = 0;
};

struct OffloadPlan {
  Schedule schedule;
  int64_t overhead = 0;  // Beyond running everything once, with what it waits.
  int64_t peak = 0;      // The memory of the device, in bytes.
};

struct OffloadFound {
  std::optional<OffloadPlan> best;     // Within both budgets.
  std::optional<OffloadPlan> nearest;  // If there is none: the plan that exceeds the budget least.
};

// `problem` is the flat form of `strict`, which is `graph`, or `graph` without takeovers of memory
// by way of an alias. Of plans that take as long, the search prefers those that need no more memory
// there: whoever counts such memory as in use finds the same peak.
OffloadFound SearchOffload(const JointGraph& graph, const JointGraph& strict,
                           const RunProblem& problem, const OffloadLimits& limits,
                           const OffloadSearchOptions& options);

}  // namespace ckplan
