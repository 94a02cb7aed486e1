// Writes a plan as a trace for ui.perfetto.dev and Perfetto's trace processor, in their protobuf
// format.
//
//   schedule   a slice for each step, as long as its cost and at least one unit: its category is
//              forward, recompute, loss or backward; its arguments are the step, the operator and
//              the modules; one unit of cost is a nanosecond
//   memory     the memory at the moment of the step when use is highest, as counters in
//              bytes: the total, whose maximum is the plan's peak, and each kind
//   constants  parameters, their gradients, optimizer state and inputs, in no other counter
#pragma once

#include <string>

#include "lib/explain/traced_plan.h"

namespace ckplan {

std::string WritePerfetto(const TracedPlan& traced);

}  // namespace ckplan
