// The memory at each step of some runs, and the position of each step in an order of first runs.
// This shows where a program over moments needs further moments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "lib/problem/graph/joint_graph.h"
#include "lib/problem/runs/run_problem.h"

namespace ckplan {

struct StepView {
  std::vector<int64_t> bytes;
  // The position in the order of the first run at or after the step; the order's size after the
  // last one.
  std::vector<int32_t> position;

  int64_t Peak() const;
};

// `order` lists operations in the order of their first runs in `runs`.
StepView ViewSteps(const JointGraph& graph, std::span<const OpId> order, const Runs& runs);

// Consecutive steps above the budget form stretches. Among stretches that contain a step which
// `may_take` accepts, takes the one with the highest peak, and returns its accepted step of most
// memory.
std::optional<size_t> TopAbove(const StepView& view, int64_t budget,
                               const std::function<bool(size_t)>& may_take);

}  // namespace ckplan
