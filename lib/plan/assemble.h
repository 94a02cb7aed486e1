// Makes a plan of a schedule: simulates it, places its buffers, and gathers the figures. The caller
// checks the result (check.h) before anyone sees it.
#pragma once

#include <span>

#include "lib/base/result.h"
#include "lib/plan/plan.h"
#include "lib/schedule/arena.h"
#include "lib/schedule/schedule.h"
#include "lib/schedule/training_step.h"

namespace ckplan {

// `schedule` must be a valid schedule of the step (Simulator::Run). The caller adds the parts that
// only it knows: the request, the model's identity, the paper's figures, the guarantee. Without
// `segment_of`, all nodes are in one segment; a joint graph has none. `place` gives the buffers
// their offsets (schedule/arena.h).
//
// A joint graph's overhead is below zero where operations that no result needs never run.
Plan AssemblePlan(const TrainingStep& step, const Schedule& schedule,
                  IdVector<NodeId, int32_t> segment_of = {},
                  Arena (*place)(const Timeline& timeline) = PlaceBuffers);

// The plan of these runs of a joint graph, placed tightly.
Plan AssembleRuns(const TrainingStep& step, std::span<const OpId> runs);

// What the schedule of the timeline decides on each node, which is in that segment.
IdVector<NodeId, NodeDecision> DecisionsOf(const TensorGraph& graph, const Timeline& timeline,
                                           const IdVector<NodeId, int32_t>& segment_of);

// What is in memory at the timeline's peak.
PeakMoment PeakMomentOf(const Timeline& timeline);

}  // namespace ckplan
