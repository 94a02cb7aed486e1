// A schedule ready to be run: its program, and the place of each buffer in the arena.
#pragma once

#include <vector>

#include "lib/backend/backend.h"
#include "lib/base/result.h"
#include "lib/exec/program.h"
#include "lib/exec/step_operators.h"
#include "lib/model/step_graph.h"

namespace ckplan {

struct Plan;

struct PlacedProgram {
  Program program;
  std::vector<Bytes> offsets;
  Bytes arena_bytes;
  Bytes predicted_peak;
  // Whether workspaces are buffers of the program; if not, they lie outside the arena.
  bool has_workspaces = false;
};

// The graph of the step with the sizes that are placed in the arena: with workspaces if the plan
// knows them, and with sizes rounded up as in the plan.
struct SizedGraph {
  TensorGraph graph;
  bool has_workspaces = false;
  // False if the plan was made for other float types, so that its offsets do not fit.
  bool has_planned_sizes = true;
};

// `planned` is the graph that the plan was made for, before its sizes were aligned. kCheckFailed:
// the plan's workspaces differ from the backend's; the message names the first such node.
Result<SizedGraph> GraphToRun(const StepGraph& step, const StepOperators& operators,
                              const TensorGraph& planned, int64_t align_bytes);

// Places the schedule with newly computed offsets.
PlacedProgram PlaceProgram(const StepGraph& step, const SizedGraph& run, const Schedule& schedule);
// Places the plan's schedule, with the plan's own offsets where they fit. kCheckFailed: the
// schedule is no training step of the graph. ArenaMemory checks the offsets.
Result<PlacedProgram> PlaceByPlan(const StepGraph& step, const SizedGraph& run, const Plan& plan);
// Places the schedule that keeps everything. Its order computes the same gradients as `planned`,
// bit for bit.
PlacedProgram PlaceKeepAll(const StepGraph& step, const SizedGraph& run, const Schedule& planned);

// Returns the largest workspace of any node. A program without workspaces needs this much memory
// outside the arena.
Bytes LargestWorkspace(const StepOperators& operators);

}  // namespace ckplan
