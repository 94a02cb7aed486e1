// Searches for plans that recompute some values and offload others. Anneals from several starts,
// then again from the best results.
//
// Guarantee  a plan, if found, is valid and fits both budgets.
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

// Combines choices: treats values computed before some position of the order as one choice does,
// and later ones as another does.
//
// Minimum cuts find extremes. In a network of equal layers they treat all layers alike, so one
// choice takes too much memory and the next too much time; the best fit treats some layers one way
// and the others another way.
//
// Cost  counted in actions of the sequences tried.

// What a sequence takes. Its score is its time plus a charge for exceeding the budgets: one percent
// of a step per percent of a budget.
struct OffloadMeasures {
  int64_t peak = 0;
  int64_t time = 0;
  bool fits = false;
  double score = 0;
};
OffloadMeasures MeasureOffload(const RunProblem& problem, const OffloadLimits& limits,
                               const RunsAndLoads& steps);

// Returns the sequences of the choices and of their best combinations. All choices must have the
// same order and moment. `work` limits the actions of all combinations tried.
std::vector<RunsAndLoads> CrossChoices(const RunProblem& problem, const OffloadLimits& limits,
                                       const std::vector<OffloadChoice>& choices, int64_t work);

struct OffloadWork {
  int64_t crossed_per_op = 0;  // The work of CrossChoices, per operation.
  int64_t steps_per_op = 0;    // OffloadAnnealOptions::work of all chains, per operation.
  int starts = 0;              // Chains from different starts.
  int rounds = 0;              // Chains after these, from the best plans so far. They do half of
                               // the work.
};

// The last three take about 0.3, 3 and 20 seconds for 500 operations, each on top of those before.
inline constexpr OffloadWork kBriefOffload = {100, 5'000, 1, 0};
inline constexpr OffloadWork kQuickOffload = {300, 30'000, 2, 1};
inline constexpr OffloadWork kNormalOffload = {2'000, 250'000, 3, 1};
inline constexpr OffloadWork kThoroughOffload = {4'000, 2'000'000, 8, 4};

struct OffloadSearchOptions {
  OffloadWork work = kNormalOffload;
  // Known plans that obey the rules, with at most one copy back of each value.
  std::vector<Schedule> starts;
  // Plans of an earlier search. Only the last chain may start from them, so that the others find
  // different ones.
  std::vector<Schedule> found;
  std::vector<OffloadChoice> choices;  // Such as those from bounds; their plans may be bad.
  // A plan that adds at most this ends the search: it meets a lower bound, or is good enough.
  int64_t enough = 0;
};

struct OffloadPlan {
  Schedule schedule;
  int64_t overhead = 0;  // Beyond running everything once, including waits.
  int64_t peak = 0;      // On the device, in bytes.
};

struct OffloadFound {
  std::optional<OffloadPlan> best;     // Within both budgets.
  std::optional<OffloadPlan> nearest;  // If unset: the plan that exceeds the budget least.
};

// `problem` is the flat form of `strict`, which is `graph`, or `graph` without in-place writes
// through an alias. Among equally fast plans, the search prefers those that need no more memory
// there: code that counts such memory as in use finds the same peak.
OffloadFound SearchOffload(const JointGraph& graph, const JointGraph& strict,
                           const RunProblem& problem, const OffloadLimits& limits,
                           const OffloadSearchOptions& options);

}  // namespace ckplan
