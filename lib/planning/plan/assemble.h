// Makes a plan of a schedule: simulates it, places its buffers, and gathers the figures. The caller
// checks the result (check.h) before anyone sees it.
#pragma once

#include <span>

#include "lib/base/result.h"
#include "lib/planning/plan/plan.h"
#include "lib/problem/schedule/arena.h"
#include "lib/problem/schedule/schedule.h"
#include "lib/problem/schedule/training_step.h"

namespace ckplan {

// `schedule` must be a valid schedule of the step (Simulator::Run). The caller adds the parts that
// only it knows: the request, the model's identity, the paper's figures, the guarantee. Without
// `segment_of`, all nodes are in one segment; a joint graph has none. `place` gives the buffers
// their offsets (schedule/arena.h).
//
// The overhead of a joint graph's plan is below zero if operations that no result needs never run.
// If the step has a link to the host, the plan has the figures of the transfers and the offsets of
// the copies there.
Plan AssemblePlan(const TrainingStep& step, const Schedule& schedule,
                  IdVector<NodeId, int32_t> segment_of = {},
                  Arena (*place)(const Timeline& timeline) = PlaceBuffers);

// Returns the plan of these runs of a joint graph, with its buffers placed by PlaceTightly.
Plan AssembleRuns(const TrainingStep& step, std::span<const OpId> runs);

// Returns the decision of the timeline's schedule on each node, with the node's segment.
IdVector<NodeId, NodeDecision> DecisionsOf(const TensorGraph& graph, const Timeline& timeline,
                                           const IdVector<NodeId, int32_t>& segment_of);

// Returns what is in memory at the timeline's peak.
PeakMoment PeakMomentOf(const Timeline& timeline);

}  // namespace ckplan
