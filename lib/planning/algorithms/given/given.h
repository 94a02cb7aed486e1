// Turns a user's decisions into a plan like any other.
//
//   No paper: it is for plans from papers and from people. Hong et al. 2024, Fig. 8 (checkpoints),
//   and Chen et al. 2016, section 4.5: "enable user to set the mirror attribute".
//
// Idea. Names are looked up in the graph, and the decisions become a strategy:
//   kept           a KeptSet: the nodes that make these tensors. All others are recomputed when
//                  backward first needs them, including the last ones
//   checkpoints    lower sets: L_i holds the first i checkpoints and everything that they depend
//                  on; the remaining nodes are the last segment. So the other tensors that cross a
//                  cut are kept as well as the checkpoint, and the whole last segment is kept
//   mirror_counts  Alg. 2 of Chen (lib/problem/schedule/lower_checkpoints.h); nodes that are not
//   named have 0 lower_sets     as they are; each is written whole, or as the nodes it adds to the
//   one before.
//                  V is added if it is missing
//   order          the schedule itself; steps that free make it a schedule of explicit frees.
//                  Backward runs in the reverse of forward, unless the problem's order is free
//
// Guarantee  none: it follows the decisions. Impossible decisions are refused by name.
// Needs      any DAG. With layers, names are those of `ckplan graph MODEL --granularity layer`.
//            Decisions about joint graphs are read by given_runs.h.
// Cost       O(nodes + edges + size of the decisions).
// Paper      for lower sets, Eq. 1 and 2 of Kusumoto et al. 2019. Other forms have no objective:
//            `result.paper` repeats the simulated peak and overhead on the graph of the decisions.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "lib/planning/plan/solver.h"

namespace ckplan {

// The guarantee that plans from decisions report.
inline constexpr std::string_view kGuaranteeOfDecisions = "none: somebody's own decisions";
// The cost of all runs of any plan in a file is below this.
inline constexpr int64_t kMaxDecidedCost = int64_t{1} << 62;

// Returns the error for a request that has no decisions.
Error NoDecisions();

// kUsage: the problem has no decisions. kInvalidInput: they do not fit the graph; the message
// counts all faults and gives the first ten in full.
Result<std::unique_ptr<PreparedSolver>> PrepareGiven(const Problem& problem,
                                                     const SolveLimits& limits);

}  // namespace ckplan
