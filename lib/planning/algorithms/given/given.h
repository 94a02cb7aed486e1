// Turns a user's decisions into a plan.
//
//   No paper: for plans from papers and users. Hong et al. 2024, Fig. 8 (checkpoints), and Chen et
//   al. 2016, section 4.5: "enable user to set the mirror attribute".
//
// Idea. Names are looked up in the graph, and the decisions become a strategy:
//   kept           a KeptSet: the nodes that produce these tensors. All others are recomputed when
//                  backward first needs them, including the last ones
//   checkpoints    lower sets: L_i holds the first i checkpoints and everything that they depend
//                  on; the remaining nodes are the last segment. So the other tensors that cross a
//                  cut are kept as well as the checkpoint, and the whole last segment is kept
//   mirror_counts  Alg. 2 of Chen (lib/problem/schedule/lower.h); other nodes have a count of 0
//   lower_sets     as they are; each is written in full, or as the nodes it adds to the one before.
//                  V is added if it is missing
//   order          the schedule itself; steps that free make it a schedule of explicit frees.
//                  Backward runs in the reverse of forward, unless the problem's order is free
//
// Guarantee  none: it follows the decisions. Errors name impossible decisions.
// Needs      any DAG. With layers, names are those of `ckplan graph MODEL --granularity layer`.
//            StepsOfDecisions reads decisions about joint graphs.
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

// The guarantee of plans from decisions.
inline constexpr std::string_view kGuaranteeOfDecisions = "none: user-provided decisions";
// The total cost of all runs of any plan in a file is below this.
inline constexpr int64_t kMaxDecidedCost = int64_t{1} << 62;

// Returns the error for a request without decisions.
Error NoDecisionsError();

// kUsage: the problem has no decisions. kInvalidInput: they don't fit the graph; the message counts
// all faults and lists the first ten.
Result<std::unique_ptr<PreparedSolver>> PrepareGiven(const Problem& problem,
                                                     const SolveLimits& limits);

// Turns decisions about a joint graph into runs.
//
//   kept    Values that stay in memory between the phases. The operations of the phase `forward`
//           run in the graph's own order. Then everything is dropped except these values, values
//           that share their memory, results, and results of operations that never run twice. The
//           rest of the graph runs in its own order, and recomputes missing values when it reads
//           them. So the graph must say where the phase `backward` begins.
//   order   The runs themselves and, on a device with a link to its host, transfers among them.
//
// The other forms decide on segments and copies of forward nodes, and are rejected.

// Returns the actions from the decisions for a joint graph. kUsage: `decisions` is null, or in a
// form for forward graphs. kInvalidInput: they don't fit the graph; the message counts all faults
// and lists the first ten. O(size of the decisions + all runs and the values they read).
Result<Schedule> StepsOfDecisions(const TrainingStep& step, const Decisions* decisions);

}  // namespace ckplan
