// Random search over sequences of runs, for what no program over moments reaches.
//
//   Imanishi et al. "A Simulated Annealing Algorithm for Rematerialization on Data Flow Graphs",
//   NeurIPS 2023: anneal on the sequence itself, whatever it recomputes and in whatever order.
//
// Idea. From a plan, move on to a neighbour: a run elsewhere, one more, one less; always if it is
// no worse, else with a probability that falls with the temperature. A plan's energy is
// ln(max(budget, peak)) + cost / total cost, so that memory above the budget and time are exchanged
// at equal ratios, and memory below it is worth nothing. While nothing is found that fits, memory
// gains weight.
// Guarantee  none; the result is no worse than any start that is within the budget.
// Cost       counted in moves: about a million a second where operations have few readers
//            (RunSequence), whatever the length of the sequence.
// Differs    from the paper: the peak is kept up to date instead of computed anew, some moves look
// at
//            the run that needs the peak, and first runs may have to keep their order.
#pragma once

#include <cstdint>
#include <span>

#include "lib/joint/run_problem.h"
#include "lib/joint/run_rules.h"

namespace ckplan {

struct AnnealOptions {
  int64_t moves = 2'000'000;  // Of all starts together.
  uint64_t seed = 0;
  bool free_order = true;  // Else first runs stay in the order of the start.
  // If set, what the starts obey, and all plans where first runs keep their order; else almost all.
  const RunRules* rules = nullptr;
  // Of the energy: what is 0.3 % worse is accepted with a probability of 1/e at first.
  double start_temperature = 3e-3;
  double end_temperature = 2e-6;
};

struct AnnealOutcome {
  Runs runs;
  int64_t peak = 0;
  int64_t cost = 0;
  int64_t moves = 0;  // That were tried.
};

// The cheapest plan within the budget, or the one of least peak if none is. At least one start; all
// are plans. The moves are shared out equally among the starts. Heeds a stop (lib/base/stop.h) by
// returning what it has.
AnnealOutcome Anneal(const RunProblem& problem, int64_t budget, std::span<const Runs> starts,
                     const AnnealOptions& options);

}  // namespace ckplan
