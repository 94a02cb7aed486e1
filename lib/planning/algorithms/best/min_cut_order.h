// Finds orders with a low peak without recomputation, by recursive minimum cuts. A cut splits the
// operations at a downset across which few bytes live. Then each half is split in the same way,
// given the values that live across its ends. Small parts are ordered greedily.
//
//   required operations ── minimum cut around a pivot ──▶ before │ the pivot and after
//                                                      before │ after    …
//
// The downset holds the pivot's ancestors, but neither the pivot nor its descendants (Theorem 4 of
// docs/bounds.md, within the part). The first start uses the middle operation of each part as the
// pivot. The others draw several operations and use the one with the largest working set.
//
// Guarantee  A valid order of the required operations, with a peak no higher than that of the
//            graph's own order. The same seed gives the same order on every machine.
#pragma once

#include <cstdint>

#include "lib/problem/runs/run_problem.h"

namespace ckplan {

struct MinCutOrderOptions {
  uint64_t seed = 0;
  int starts = 32;
  // Visited arcs over all starts: 10^8 take about half a second.
  int64_t max_work = 100'000'000;
};

struct OrderWithPeak {
  Runs order;
  int64_t peak = 0;  // In bytes.
};

OrderWithPeak FindMinCutOrder(const RunProblem& problem, const MinCutOrderOptions& options = {});

}  // namespace ckplan
