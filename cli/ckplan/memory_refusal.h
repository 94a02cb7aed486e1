// The answer to --memory if no plan fits.
#pragma once

#include "cli/ckplan/options.h"
#include "lib/base/result.h"
#include "lib/planning/plan/solver.h"
#include "lib/planning/planner/source.h"

namespace ckplan {

// Turns an error that no plan fits the memory of a request into "doesn't fit: the least is 8.61
// GiB; N=12 would". Other errors stay as they are. Searches for the largest size that fits, unless
// the model has none to choose; a stop leaves it out.
Error RefusalOfMemory(const Source& source, const PlanRequest& request, const Options& options,
                      const SolveLimits& limits, Error error);

}  // namespace ckplan
