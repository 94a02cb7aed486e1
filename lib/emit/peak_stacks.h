// Writes the memory at a plan's peak as folded stacks, one line for each different stack, for
// flamegraph.pl, inferno, speedscope and similar tools:
//
//   kept;layer1;layer1.0;layer1.0.conv1;Conv;conv2d_1 12845056
//
// The frames are the kind, the paths of the modules, the operator and the tensor; the number is in
// bytes. The numbers add up to the peak.
#pragma once

#include <string>

#include "lib/explain/traced_plan.h"

namespace ckplan {

std::string WritePeakStacks(const TracedPlan& traced);

}  // namespace ckplan
