// Joint graphs for tests, written as a list of operations.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/problem/graph/joint_graph.h"

namespace ckplan {

struct SmallOp {
  std::string op;  // Both the name and the type of the operation.
  int64_t bytes = 0;
  int64_t cost = 0;
  std::vector<int32_t> reads;  // Positions of the operations whose values it reads.
};

// Makes a graph with one value for each operation; the last value is the result. Operations from
// `first_backward` on belong to the backward phase.
JointGraph GraphOfOps(const std::vector<SmallOp>& ops,
                      std::optional<size_t> first_backward = std::nullopt);

}  // namespace ckplan
