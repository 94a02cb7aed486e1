// Sequences of runs and loads, in which algorithms plan copies to the host. A load brings a value
// back like a run of its producer, but without reads and cost.
//
//   a  b  c  d  loss  D  load(b)  C        b is copied to the host after its first run, and is away
//                                          between its last read before the load and the load
//
// A CopyScheduler decides when the copies begin and end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lib/problem/cost/link.h"
#include "lib/problem/runs/copy_schedule.h"
#include "lib/problem/runs/run_problem.h"
#include "lib/problem/schedule/schedule.h"

namespace ckplan {

// A step is an operation, or LoadOf(value). A value is loaded at most once, after a run that writes
// it. A load that nothing reads has no effect.
using RunsAndLoads = std::vector<int32_t>;
inline int32_t LoadOf(const RunProblem& problem, int32_t value) { return problem.op_count + value; }
inline bool IsLoad(const RunProblem& problem, int32_t step) { return step >= problem.op_count; }
inline int32_t LoadedBy(const RunProblem& problem, int32_t step) { return step - problem.op_count; }
Runs RunsIn(const RunProblem& problem, const RunsAndLoads& steps);  // Without the loads.
// The decisions at one moment of an order. Before the moment, the operations run once. Across the
// moment, the `kept` values stay in memory. After it, a missing value is copied back right before
// its first reader if it is `loaded`, and otherwise recomputed right before its reader.
struct OffloadChoice {
  std::vector<OpId> order;
  size_t moment = 0;
  std::vector<bool> kept;    // By value.
  std::vector<bool> loaded;  // By value.
};

// Returns the sequence for `choice`. Keeps values that can be neither loaded nor recomputed.
RunsAndLoads ExpandChoice(const RunProblem& problem, const OffloadChoice& choice);

// Returns the CopyScheduler's task for the sequence. The maximum of its bytes is the peak if copies
// take no time. O(reads and writes of all steps).
CopyTask CopyTaskOf(const RunProblem& problem, const RunsAndLoads& steps);
int64_t PeakOf(const CopyTask& task);

// Merges the runs and the copies.
Schedule ScheduleWithCopies(const RunProblem& problem, const RunsAndLoads& steps,
                            const CopyPlan& copies);

}  // namespace ckplan
