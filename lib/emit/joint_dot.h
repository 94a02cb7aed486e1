// Draws a joint graph, or a plan for it, in the DOT language, as dot.h does for forward graphs.
//
//   keep        blue box        phases are clusters; edges show the sizes of their values;
//   recompute   orange ellipse  operations that run more than once say how often
//   drop        dashed hexagon
//
// Constants with readers are plain names. Deterministic; O(operations + reads).
#pragma once

#include <string>

#include "lib/joint/joint_graph.h"
#include "lib/plan/plan.h"

namespace ckplan {

// `plan` may be null, which draws the graph alone. Otherwise it must be a plan for `graph`.
std::string WriteJointDot(const JointGraph& graph, const Plan* plan);

}  // namespace ckplan
