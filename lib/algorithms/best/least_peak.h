// The plan of the least peak that SolveBest finds, by halving the range of budgets.
#pragma once

#include <cstdint>
#include <optional>

#include "lib/algorithms/best/best.h"
#include "lib/algorithms/best/run_problem.h"
#include "lib/base/result.h"
#include "lib/joint/joint_graph.h"

namespace ckplan {

struct LeastPeak {
  std::optional<Runs> runs;        // Nothing: no plan below `reached` was found.
  int64_t refused = 0;             // The largest peak below which nothing was found.
  bool is_refusal_proven = false;  // No plan of any order has a peak of `refused` or less.
};

// Looks for plans whose peak is below `reached`, down to what certificates allow: first for that
// itself, which chains reach, then in the middle of what remains, ten times at most. The budget of
// the options does not count, the work is that of each trial.
Result<LeastPeak> FindLeastPeak(const JointGraph& graph, BestOptions options, int64_t reached);

}  // namespace ckplan
