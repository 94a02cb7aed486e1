// The times of copies between the device and the host, by value.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/problem/cost/link.h"
#include "lib/problem/graph/tensor_graph.h"
#include "lib/problem/runs/run_problem.h"

namespace ckplan {

// Indexed by value of a RunProblem. Times are in nanoseconds, as costs are.
struct CopyTimes {
  std::vector<bool> may_move;  // Whether plans may copy the value to the host and back.
  std::vector<int64_t> out;    // To the host.
  std::vector<int64_t> in;     // Back to the device.
  bool is_half_duplex = false;
};

// Times are at most kMaxTotalCost here: no bound gains from more.
CopyTimes CopyTimesOf(const RunProblem& problem, const Link& link, std::vector<bool> may_move);

}  // namespace ckplan
