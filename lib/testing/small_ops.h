// Joint graphs for tests, written as a list of operations.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/joint/joint_graph.h"

namespace ckplan {

struct SmallOp {
  std::string op;  // Its name, and its type.
  int64_t bytes = 0;
  int64_t cost = 0;
  std::vector<int32_t> reads;  // Positions of the operations whose values it reads.
};

// One value for each operation; the last one is the result. Operations from `first_backward` on
// are of the backward phase.
JointGraph GraphOfOps(const std::vector<SmallOp>& ops,
                      std::optional<size_t> first_backward = std::nullopt);

}  // namespace ckplan
