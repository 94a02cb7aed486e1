// Finds plans of little peak by halving ranges of budgets for SolveBest.
#pragma once

#include <cstdint>
#include <optional>

#include "lib/base/result.h"
#include "lib/planning/algorithms/best/best.h"
#include "lib/problem/graph/joint_graph.h"
#include "lib/problem/runs/run_problem.h"

namespace ckplan {

struct LeastPeak {
  std::optional<Runs> runs;  // Empty if no plan below `reached` was found.
  PeakBound bound;           // Holds for all plans of the graph within its scope.
};

// Searches for plans whose peak is below `reached`, down to the lower bound of the certificates:
// first at that bound itself, which plans of chains reach, then at the middle of the remaining
// range, at most ten times. The options' budget is ignored. Their work applies to each trial; the
// programs of all trials together get less on graphs of fewer than `full_ops` operations, but at
// least as much as one trial.
Result<LeastPeak> FindLeastPeak(BestProblem* problem, BestOptions options, int64_t reached);

// Searches for plans on the problem's curve that add at most this and have less memory than the
// curve knows: halves what is left between its plan and its bound a few times. Only for graphs of
// up to kFewProgramOps operations, and of up to kMaxProgramOps where it may add little; for others
// the curve is nearly as good.
Result<Done> LowerPeakWithin(int64_t most_added, BestProblem* problem);

}  // namespace ckplan
