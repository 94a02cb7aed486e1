// Proves a lower bound for plans with copies to the host, first by cuts (offload_cut.h) and then,
// if there is a MIP solver and work for it, by the program over one moment (moment_program.h),
// which is tighter by about .1 points of a step. The program begins with the windows of copies that
// the cuts found, and is solved again with those that its solution exceeds.
//
// Guarantee  the bounds hold for all plans whose first runs have this order. The same limits give
//            the same outcome.
// Cost       10 ms for the cuts of 800 operations, and 3 to 30 s for their programs, if `work`
// allows
//            that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lib/base/result.h"
#include "lib/planning/algorithms/best/offload_network.h"
#include "lib/planning/plan/certificate.h"
#include "lib/problem/runs/run_problem.h"
#include "lib/problem/runs/runs_and_loads.h"

namespace ckplan {

struct OffloadBoundLimits {
  int64_t cuts = 200;
  int64_t work = 0;  // For programs, as MipLimits counts it; 0: there are only cuts.
};

struct OffloadBound {
  bool is_infeasible = false;  // Proven: no plan fits, and `least_peak` is above the budget.
  PeakBound least_peak;
  // A lower bound of what plans add to running the operations of the order once each.
  int64_t lower_bound = 0;
  OverheadProof proof = OverheadProof::kRunOnce;
  // What plans may do at the moment, the best first: those of programs, then those of cuts.
  std::vector<OffloadChoice> choices;
  int64_t work = 0;  // The work done in programs.
};

// `order` and `moment` are as in CutWithOffload. Where the order itself needs most memory is a good
// moment. kUnsupported: too large for the MIP solver.
Result<OffloadBound> ProveOffloadBound(const RunProblem& problem, const CopyTimes& times,
                                       std::span<const OpId> order, size_t moment, int64_t budget,
                                       const OffloadBoundLimits& limits);

}  // namespace ckplan
