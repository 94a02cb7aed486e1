// A schedule as it is run: its program, and the place of each buffer in the arena.
#pragma once

#include <vector>

#include "lib/backend/backend.h"
#include "lib/base/result.h"
#include "lib/exec/program.h"
#include "lib/exec/step_operators.h"
#include "lib/model/step_graph.h"
#include "lib/plan/plan.h"

namespace ckplan {

struct PlacedProgram {
  Program program;
  std::vector<Bytes> offsets;
  Bytes arena_bytes;
  Bytes predicted_peak;
  // Whether workspaces are buffers of the program; if not, they lie outside the arena.
  bool has_workspaces = false;
};

// The graph of the step in the sizes that are placed: with workspaces if the plan knows them, and
// rounded up as the plan rounds them.
struct SizedGraph {
  TensorGraph graph;
  bool has_workspaces = false;
  // False: the plan was made for tensors of other float types, so its offsets do not fit.
  bool has_planned_sizes = true;
};

// `planned` is the graph that the plan was made for, before its sizes were aligned.
// kCheckFailed: the plan's workspaces are not those of the backend; names the first such node.
Result<SizedGraph> GraphToRun(const StepGraph& step, const StepOperators& operators,
                              const TensorGraph& planned, int64_t align_bytes);

// The schedule with offsets of its own.
PlacedProgram PlaceProgram(const StepGraph& step, const SizedGraph& run, const Schedule& schedule);
// The plan's schedule, with the plan's own offsets where they fit.
PlacedProgram PlaceByPlan(const StepGraph& step, const SizedGraph& run, const Plan& plan);
// The schedule that keeps everything, in the forward order of `planned`.
PlacedProgram PlaceKeepAll(const StepGraph& step, const SizedGraph& run, const Schedule& planned);

// The largest workspace of any node. A program without workspaces needs that much beside the arena.
Bytes LargestWorkspace(const StepOperators& operators);

}  // namespace ckplan
