// Makes a plan of a schedule: simulates it, places its buffers, and gathers the figures. The caller
// checks the result (check.h) before anyone sees it.
#pragma once

#include "lib/base/result.h"
#include "lib/plan/plan.h"
#include "lib/schedule/arena.h"
#include "lib/schedule/schedule.h"

namespace ckplan {

// `schedule` must be a valid training step of `graph` (Simulator::Run). The caller adds the parts
// that only it knows: the request, the model's identity, the paper's figures, the guarantee.
// `place` gives the buffers their offsets (schedule/arena.h).
Plan AssemblePlan(const TensorGraph& graph, const Schedule& schedule,
                  IdVector<NodeId, int32_t> segment_of,
                  Arena (*place)(const Timeline& timeline) = PlaceBuffers);

// What the schedule of the timeline decides on each node, which is in that segment.
IdVector<NodeId, NodeDecision> DecisionsOf(const TensorGraph& graph, const Timeline& timeline,
                                           const IdVector<NodeId, int32_t>& segment_of);

// What is in memory at the timeline's peak.
PeakMoment PeakMomentOf(const Timeline& timeline);

}  // namespace ckplan
