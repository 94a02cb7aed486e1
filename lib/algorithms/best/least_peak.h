// The plan of the least peak that SolveBest finds, by halving the range of budgets.
#pragma once

#include <cstdint>
#include <optional>

#include "lib/algorithms/best/best.h"
#include "lib/base/result.h"
#include "lib/joint/joint_graph.h"
#include "lib/joint/run_problem.h"

namespace ckplan {

struct LeastPeak {
  std::optional<Runs> runs;  // Nothing: no plan below `reached` was found.
  PeakBound bound;           // Of all plans of the graph within its scope.
};

// Looks for plans whose peak is below `reached`, down to what certificates allow: first for that
// itself, which chains reach, then in the middle of what remains, ten times at most. The budget of
// the options does not count. The work is that of each trial; the programs of all trials together
// get less on graphs of fewer than `full_ops` operations, though no less than a trial's.
Result<LeastPeak> FindLeastPeak(BestProblem* problem, BestOptions options, int64_t reached);

}  // namespace ckplan
