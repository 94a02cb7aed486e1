// Decisions that somebody has made, as a plan like any other.
//
//   No paper: it is for plans of papers and of people. Hong et al. 2024, Fig. 8 (checkpoints), and
//   Chen et al. 2016, section 4.5: "enable user to set the mirror attribute".
//
// Idea. Names are looked up in the graph, and what they decide becomes a strategy:
//   kept           a KeptSet: the nodes that make these tensors. All else is recomputed when
//   backward
//                  first asks for it, also what comes last
//   checkpoints    lower sets: L_i is everything that the first i checkpoints depend on, and they
//                  themselves; what is left is the last segment. So what crosses a cut is kept
//                  beside the checkpoint, and the last segment is kept whole
//   mirror_counts  Alg. 2 of Chen (lib/schedule/lower_mirrored.h); nodes that are not named have 0
//   lower_sets     as they are; each is written whole, or as what it adds to the one before. V is
//                  added if it is missing
//   order          the schedule itself; steps of frees make it one of explicit frees. Backward in
//                  the reverse of forward, unless the problem's order is free
//
// Guarantee  none: it does what it is told. Impossible decisions are refused by name.
// Needs      any DAG. With layers, names are those of `ckplan graph MODEL --granularity layer`.
//            Decisions about joint graphs are read by given_runs.h.
// Cost       O(nodes + edges + what is given).
// Paper      for lower sets, Eq. 1 and 2 of Kusumoto et al. 2019. Other forms have no objective:
//            `result.paper` repeats the simulated peak and overhead of the graph that was decided
//            on.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "lib/plan/solver.h"

namespace ckplan {

// What plans of decisions guarantee.
inline constexpr std::string_view kGuaranteeOfDecisions = "none: somebody's own decisions";
// Above the cost of all runs of any plan that a file may have.
inline constexpr int64_t kMaxDecidedCost = int64_t{1} << 62;

// The refusal of who asks for a plan of decisions without them.
Error NoDecisions();

// kUsage: the problem has no decisions. kInvalidInput: they do not fit the graph; the message has
// all faults, the first ten in full.
Result<std::unique_ptr<PreparedSolver>> PrepareGiven(const Problem& problem,
                                                     const SolveLimits& limits);

}  // namespace ckplan
