// A plan that uses every field, with values that make no sense, for tests of what is written and
// read: both must keep every value.
#pragma once

#include "lib/base/rng.h"
#include "lib/planning/plan/plan.h"

namespace ckplan {

// A moment whose buffers add up to less than 2^50 bytes.
PeakMoment RandomPeak(Rng& rng, const TensorGraph& graph);

Plan RandomPlan(Rng& rng, const TensorGraph& graph);

}  // namespace ckplan
