// The memory at each step of some runs, and where in an order of first runs the steps lie: where a
// program over moments needs further moments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "lib/joint/joint_graph.h"
#include "lib/joint/run_problem.h"

namespace ckplan {

struct StepView {
  std::vector<int64_t> bytes;
  // In the order, of the first run at or behind the step; the order's size behind the last.
  std::vector<int32_t> position;

  int64_t Peak() const;
};

// `order`: operations in the order of their first runs in `runs`.
StepView ViewSteps(const JointGraph& graph, std::span<const OpId> order, const Runs& runs);

// The steps above the budget form stretches. Of the highest stretch that has a step which
// `may_take` accepts: the one of those that needs the most memory.
std::optional<size_t> TopAbove(const StepView& view, int64_t budget,
                               const std::function<bool(size_t)>& may_take);

}  // namespace ckplan
