// What a plan's summary says about values that are moved to the host.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "lib/planning/plan/plan.h"
#include "lib/problem/schedule/training_step.h"

namespace ckplan {

// Returns the lines, the first of which says the link; none for a plan without `offload`.
std::vector<std::string> OffloadTexts(const TrainingStep& step, const Plan& plan);

// "pcie4, 25 GB/s out and 20 GB/s in, half duplex, 10 us a copy"
std::string LinkText(const Link& link);

// Returns a line for the head of a table of plans with this request: the label, padded to
// `label_width`, the link and the limit on the host's memory. Returns nothing without a link.
std::string LinkLine(const PlanRequest& request, size_t label_width);

}  // namespace ckplan
