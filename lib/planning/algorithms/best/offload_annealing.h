// Random search over sequences of runs and loads, for plans that recompute some values and copy
// others to the host and back.
//
// Idea. As in annealing.h, a move changes the plan to a neighbour: one more rerun or load, one
// less, a rerun in place of a load or the reverse, or one step elsewhere. Its energy is the time
// that a CopyScheduler finds. That takes a pass over all runs, so a neighbour is scheduled only if
// it would fit if copies took no time, and if its runs alone do not take too long already; the pass
// ends once the sequence is too late. Sequences above the budget are allowed for a charge.
//
// Guarantee  none; the result is no worse than a start that is within the budgets.
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
  int64_t budget = 0;                  // On the peak of the device, in bytes.
  std::optional<int64_t> host_budget;  // In bytes.
  std::vector<bool> may_move;          // By value: it may be copied to the host.
  const RunRules* rules = nullptr;     // If set, the runs have to obey them.
};

struct OffloadAnnealOptions {
  int64_t work = 0;    // In steps of the sequences that are scheduled; a bit for other moves.
  int64_t enough = 0;  // It ends with a plan that takes no longer.
  uint64_t seed = 0;
  // Temperatures as parts of the time that the plan adds.
  double start_temperature = 2e-3;
  double end_temperature = 1e-4;
  // If set, the charge for memory above the budget also falls while sequences fit, so that the
  // search crosses the budget in both directions. Else it rises until a sequence fits.
  bool follows_budget = false;
};

struct OffloadAnnealOutcome {
  RunsAndLoads steps;
  bool fits = false;
  int64_t time = 0;  // The time at which the last run ends.
  int64_t work = 0;
};

// The start has to obey the rules. First runs keep its order. On a stop (lib/base/stop.h) it
// returns the best so far.
OffloadAnnealOutcome AnnealOffload(const RunProblem& problem, const OffloadLimits& limits,
                                   const RunsAndLoads& start, const OffloadAnnealOptions& options);

}  // namespace ckplan
