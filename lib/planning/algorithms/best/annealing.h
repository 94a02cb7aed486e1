// Random search over sequences of runs, for plans that no program over moments reaches.
//
//   Imanishi et al. "A Simulated Annealing Algorithm for Rematerialization on Data Flow Graphs",
//   NeurIPS 2023: anneal on the sequence itself, whatever it recomputes and in whatever order.
//
// Idea. A move changes the plan to a neighbour: a run elsewhere, one more, one less. It is accepted
// if the neighbour is no worse, else with a probability that falls with the temperature. A plan's
// energy is ln(max(budget, peak)) + cost / total cost, so memory above the budget and time are
// exchanged at equal ratios, and memory below the budget is worth nothing. While no plan fits,
// memory gains weight.
// Guarantee  none; the result is no worse than any start that is within the budget.
// Cost       counted in moves: about a million a second if operations have few readers
//            (RunSequence), whatever the length of the sequence.
// Differs    from the paper: the peak is updated instead of recomputed, some moves target the run
//            that needs the peak, and first runs may have to keep their order.
#pragma once

#include <cstdint>
#include <span>

#include "lib/problem/runs/run_problem.h"
#include "lib/problem/runs/run_rules.h"

namespace ckplan {

struct AnnealOptions {
  int64_t moves = 2'000'000;  // For all starts together.
  uint64_t seed = 0;
  bool free_order = true;  // False: first runs stay in the order of the start.
  // If set, the starts obey these rules. All plans obey them if first runs keep their order;
  // otherwise almost all do.
  const RunRules* rules = nullptr;
  // Temperatures in units of energy: at first, a change that is 0.3 % worse is accepted with a
  // probability of 1/e.
  double start_temperature = 3e-3;
  double end_temperature = 2e-6;
};

struct AnnealOutcome {
  Runs runs;
  int64_t peak = 0;
  int64_t cost = 0;
  int64_t moves = 0;  // The number of moves tried.
};

// Returns the cheapest plan within the budget, or the one with the least peak if none is. There
// must be at least one start, and all starts must be plans. The moves are divided equally among the
// starts. On a stop (lib/base/stop.h) it returns the best plan so far.
AnnealOutcome Anneal(const RunProblem& problem, int64_t budget, std::span<const Runs> starts,
                     const AnnealOptions& options);

}  // namespace ckplan
