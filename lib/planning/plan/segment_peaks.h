// The memory of each segment in a plan of a user's own lower sets: M^(i) of Eq. 2 of Kusumoto et
// al. 2019 (lib/problem/schedule/canonical_strategy.h). It follows from the plan and its graph, so
// it is not a member of the plan.
#pragma once

#include <vector>

#include "lib/base/units.h"
#include "lib/planning/plan/plan.h"
#include "lib/problem/graph/tensor_graph.h"

namespace ckplan {

// Returns M^(1) to M^(k), for layers if those were decided on. Empty if the request has no lower
// sets, or if the segments of an unchecked plan have wrong numbers. O(nodes + edges).
std::vector<Bytes> SegmentPeaksOf(const TensorGraph& graph, const Plan& plan);

}  // namespace ckplan
