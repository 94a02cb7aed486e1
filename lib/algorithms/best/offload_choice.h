// What a plan with copies to the host does at one moment of an order.
#pragma once

#include <cstddef>
#include <vector>

#include "lib/runs/run_problem.h"

namespace ckplan {

// Before the moment the order runs once. Across it the `kept` values stay in memory. After it a
// missing value that is `loaded` is copied back right before its first reader; any other is made
// again right before its reader.
struct OffloadChoice {
  std::vector<OpId> order;
  size_t moment = 0;
  std::vector<bool> kept;    // By value.
  std::vector<bool> loaded;  // By value.
};

}  // namespace ckplan
