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
//   mirror_counts  Alg. 2 of Chen (lib/problem/schedule/lower.h); nodes that are not
//   named have 0 lower_sets     as they are; each is written whole, or as the nodes it adds to the
//   one before.
//                  V is added if it is missing
//   order          the schedule itself; steps that free make it a schedule of explicit frees.
//                  Backward runs in the reverse of forward, unless the problem's order is free
//
// Guarantee  none: it follows the decisions. Impossible decisions are refused by name.
// Needs      any DAG. With layers, names are those of `ckplan graph MODEL --granularity layer`.
//            Decisions about joint graphs are read by given.h.
// Cost       O(nodes + edges + size of the decisions).
// Paper      for lower sets, Eq. 1 and 2 of Kusumoto et al. 2019. Other forms have no objective:
//            `result.paper` repeats the simulated peak and overhead on the graph of the decisions.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "lib/base/result.h"
#include "lib/planning/plan/decisions.h"
#include "lib/planning/plan/solver.h"
#include "lib/problem/schedule/schedule.h"
#include "lib/problem/schedule/training_step.h"

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

// Turns decisions about a joint graph into runs, as given.h does for forward graphs.
//
//   kept    Values that stay in memory between the phases. The operations of the phase `forward`
//           run in the graph's own order. Then everything they made is dropped except these values,
//           values that share their memory, results, and results of operations that never run
//           twice. The rest of the graph runs in its own order, and values that are read but
//           missing are recomputed. So the graph must say where the phase `backward` begins.
//   order   The runs themselves and, on a device with a link to its host, transfers among them.
//
// The other forms decide on segments and copies of forward nodes, and are refused.

// Returns the steps of the decisions for a joint graph. kUsage: there are no decisions (null), or
// they are in a form
// for forward graphs. kInvalidInput: they do not fit the graph; the message counts all faults and
// gives the first ten in full. O(size of the decisions + all runs and the values they read).
Result<Schedule> StepsOfDecisions(const TrainingStep& step, const Decisions* decisions);

}  // namespace ckplan
