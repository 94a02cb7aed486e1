// Draws a graph, or a plan for it: text in the DOT language for `dot -Tsvg`.
//
//   keep              blue box               segments of the plan are clusters, or the phases of
//   recompute         orange ellipse         a joint graph; edges show the sizes of their tensors;
//   transient, drop   white dashed hexagon   what runs more than once says how often
//
// The colours are those of Okabe and Ito, which colour-blind readers can distinguish, and each
// action also has its own shape. Graph inputs are plain names. Deterministic; O(nodes + edges).
#pragma once

#include <string>

#include "lib/planning/plan/plan.h"
#include "lib/problem/schedule/training_step.h"

namespace ckplan {

// `plan` may be null, which draws the graph alone. Otherwise it must be a plan for the step.
std::string WriteDot(const TrainingStep& step, const Plan* plan);

}  // namespace ckplan
