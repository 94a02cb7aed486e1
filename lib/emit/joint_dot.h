// A joint graph, or a plan for it, as a picture in the DOT language, as dot.h draws forward graphs.
//
//   keep        blue box        phases are clusters; edges show the sizes of the values that they
//   recompute   orange ellipse  stand for; operations that run more than once say how often
//   drop        dashed hexagon
//
// Constants that something reads are plain names. Deterministic; O(operations + reads).
#pragma once

#include <string>

#include "lib/joint/joint_graph.h"
#include "lib/plan/plan.h"

namespace ckplan {

// `plan` may be null: the graph alone. Otherwise it is a plan for `graph`.
std::string WriteJointDot(const JointGraph& graph, const Plan* plan);

}  // namespace ckplan
