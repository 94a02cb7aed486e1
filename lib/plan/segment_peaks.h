// What each segment of a plan of somebody's own lower sets needs: M^(i) of Eq. 2 of Kusumoto et al.
// 2019 (lib/schedule/canonical_figures.h). It follows from the plan and its graph, so it is no
// member of the plan.
#pragma once

#include <vector>

#include "lib/base/units.h"
#include "lib/graph/tensor_graph.h"
#include "lib/plan/plan.h"

namespace ckplan {

// M^(1) to M^(k), of the layers where those were decided on. Empty where the request has no lower
// sets, or where the segments of an unchecked plan are not numbered as those of such a plan are.
// O(nodes + edges).
std::vector<Bytes> SegmentPeaksOf(const TensorGraph& graph, const Plan& plan);

}  // namespace ckplan
