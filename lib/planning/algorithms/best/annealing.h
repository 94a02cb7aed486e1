// Random search over sequences of runs, for plans that programs over moments can't express.
//
//   Imanishi et al. "A Simulated Annealing Algorithm for Rematerialization on Data Flow Graphs",
//   NeurIPS 2023: anneal on the sequence itself, with any recomputation in any order.
//
// Idea. A move changes the plan to a neighbour: it moves, adds or removes a run. It is accepted if
// the neighbour is no worse, or else with a probability that falls with the temperature. A plan's
// energy is ln(max(budget, peak)) + cost / total cost, so memory above the budget trades against
// time at equal ratios, and saving memory below the budget is worth nothing. While no plan fits,
// memory gains weight.
// Guarantee  none; the result is at least as good as any start that fits the budget.
// Cost       counted in moves: about a million a second if operations have few readers
//            (RunSequence), however long the sequence is.
// Differs    from the paper: the peak is updated instead of recomputed, some moves target the run
//            that needs the peak, and first runs may have to keep their order.
#pragma once

#include <cstdint>
#include <span>

#include "lib/problem/runs/run_problem.h"
#include "lib/problem/runs/run_rules.h"

namespace ckplan {

struct AnnealOptions {
  int64_t moves = 2'000'000;  // Total over all starts.
  uint64_t seed = 0;
  bool free_order = true;  // If false, first runs keep the start's order.
  // If set, the starts obey these rules. So do all plans if first runs keep their order, and almost
  // all otherwise.
  const RunRules* rules = nullptr;
  // Temperatures in units of energy. At first, a change that is 0.3 % worse is accepted with
  // probability 1/e.
  double start_temperature = 3e-3;
  double end_temperature = 2e-6;
};

struct AnnealOutcome {
  Runs runs;
  int64_t peak = 0;
  int64_t cost = 0;
  int64_t moves = 0;  // Moves tried.
};

// Returns the cheapest plan within the budget or, if none fits, the plan with the lowest peak.
// Needs at least one start; all starts must be plans. Divides the moves equally among the starts.
// After a stop (lib/base/stop.h), returns the best plan so far.
AnnealOutcome Anneal(const RunProblem& problem, int64_t budget, std::span<const Runs> starts,
                     const AnnealOptions& options);

}  // namespace ckplan
