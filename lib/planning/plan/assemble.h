// Turns a schedule into a plan: simulates it, places its buffers and collects the figures. The
// caller checks the result (check.h) before showing it.
#pragma once

#include <span>

#include "lib/base/result.h"
#include "lib/planning/plan/plan.h"
#include "lib/problem/schedule/arena.h"
#include "lib/problem/schedule/schedule.h"
#include "lib/problem/schedule/training_step.h"

namespace ckplan {

// `schedule` must be valid for the step (Simulator::Run). The caller adds what only it knows: the
// request, the model's identity, the paper's figures, the guarantee. Without `segment_of`, all
// nodes are in one segment; joint graphs have no segments. `place` assigns the buffers' offsets
// (schedule/arena.h).
//
// The overhead of a joint graph's plan is negative if it skips operations that no result needs. If
// the step has a link to the host, the plan includes the transfers' figures and the offsets of the
// copies on the host.
Plan AssemblePlan(const TrainingStep& step, const Schedule& schedule,
                  IdVector<NodeId, int32_t> segment_of = {},
                  Arena (*place)(const Timeline& timeline) = PlaceBuffers);

// Builds the plan for these runs of a joint graph, with buffers placed by PlaceTightly.
Plan AssembleRuns(const TrainingStep& step, std::span<const OpId> runs);

// Returns each node's decision and segment, derived from the timeline's schedule.
IdVector<NodeId, NodeDecision> DecisionsOf(const TensorGraph& graph, const Timeline& timeline,
                                           const IdVector<NodeId, int32_t>& segment_of);

// Returns the contents of memory at the timeline's peak.
PeakMoment PeakMomentOf(const Timeline& timeline);

}  // namespace ckplan
