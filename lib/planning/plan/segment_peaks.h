// The memory of each segment in a plan of user-given lower sets: M^(i) of Eq. 2 of Kusumoto et al.
// 2019 (lib/problem/schedule/canonical_strategy.h). Derived from the plan and its graph, and
// therefore not stored in the plan.
#pragma once

#include <vector>

#include "lib/base/units.h"
#include "lib/planning/plan/plan.h"
#include "lib/problem/graph/tensor_graph.h"

namespace ckplan {

// Returns M^(1) to M^(k), per layer if the decisions are about layers. Empty without lower sets, or
// if an unchecked plan has wrong segment numbers. O(nodes + edges).
std::vector<Bytes> SegmentPeaksOf(const TensorGraph& graph, const Plan& plan);

}  // namespace ckplan
