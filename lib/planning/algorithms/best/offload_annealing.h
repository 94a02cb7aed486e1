// Random search over sequences of runs and loads, for plans that recompute some values and offload
// others.
//
// Idea. As in annealing.h, a move changes the plan to a neighbour: it adds, removes or moves a
// rerun or a load, or swaps one for the other. The energy is the time that a CopyScheduler finds.
// That takes a pass over all runs, so a neighbour is scheduled only if it would fit with instant
// copies, and if its runs alone don't already take too long; the pass ends once the sequence is too
// late. Sequences above the budget are allowed for a charge.
//
// Guarantee  none; the result is at least as good as a start that fits the budgets.
// Cost       counted in moves; some tens of thousands a second for hundreds of operations.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "lib/planning/algorithms/best/offload_sequence.h"
#include "lib/problem/runs/copy_schedule.h"
#include "lib/problem/runs/run_problem.h"
#include "lib/problem/runs/run_rules.h"

namespace ckplan {

struct OffloadLimits {
  Link link;
  int64_t budget = 0;                  // On the device's peak, in bytes.
  std::optional<int64_t> host_budget;  // In bytes.
  std::vector<bool> may_move;          // By value: it may be offloaded.
  const RunRules* rules = nullptr;     // If set, runs must obey them.
};

struct OffloadAnnealOptions {
  int64_t work = 0;    // In actions scheduled; other moves count a little.
  int64_t enough = 0;  // The search ends with a plan that takes at most this.
  uint64_t seed = 0;
  // Temperatures relative to the time that the plan adds.
  double start_temperature = 2e-3;
  double end_temperature = 1e-4;
  // If set, the charge for memory above the budget also falls while sequences fit, so that the
  // search crosses the budget in both directions. Otherwise it rises until a sequence fits.
  bool follows_budget = false;
};

struct OffloadAnnealOutcome {
  RunsAndLoads steps;
  bool fits = false;
  int64_t time = 0;  // When the last run ends.
  int64_t work = 0;
};

// The start must obey the rules. First runs keep its order. After a stop (lib/base/stop.h), returns
// the best plan so far.
OffloadAnnealOutcome AnnealOffload(const RunProblem& problem, const OffloadLimits& limits,
                                   const RunsAndLoads& start, const OffloadAnnealOptions& options);

}  // namespace ckplan
