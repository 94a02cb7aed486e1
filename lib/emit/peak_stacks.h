// What is in memory at a plan's peak as folded stacks, a line for each buffer that differs in its
// stack, for flamegraph.pl, inferno, speedscope and the like:
//
//   kept;layer1;layer1.0;layer1.0.conv1;Conv;conv2d_1 12845056
//
// Frames are the kind, the modules by their paths, the operator and the tensor; the number is
// bytes. Together they are the peak.
#pragma once

#include <string>

#include "lib/explain/traced_plan.h"

namespace ckplan {

std::string WritePeakStacks(const TracedPlan& traced);

}  // namespace ckplan
