// Orders of a small peak without recomputation, by recursive least cuts: the operations are split
// at a downset across which few bytes live, then each half is split in the same way, knowing what
// lives across its ends, and what is small is ordered greedily.
//
//   all that is required ── least cut around a pivot ──▶ before │ the pivot and after
//                                                      before │ after    …
//
// The downset holds the pivot's ancestors, and neither it nor its descendants (Theorem 4 of
// docs/bounds.md, within the part). The first start takes the middle of each part as its pivot, the
// others the largest working set of several operations that they draw.
//
// Guarantee  A valid order of the required operations, with a peak no higher than that of the
//            graph's own order. The same for the same seed, on every machine.
#pragma once

#include <cstdint>

#include "lib/joint/run_problem.h"

namespace ckplan {

struct MinCutOrderOptions {
  uint64_t seed = 0;
  int starts = 32;
  // In arcs looked at, over all starts: 10^8 take about half a second.
  int64_t max_work = 100'000'000;
};

struct OrderWithPeak {
  Runs order;
  int64_t peak = 0;  // Bytes.
};

OrderWithPeak FindMinCutOrder(const RunProblem& problem, const MinCutOrderOptions& options = {});

}  // namespace ckplan
