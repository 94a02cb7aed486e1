// A schedule made ready to run: its graph in the sizes of the executor, its program, its arena.
#pragma once

#include <vector>

#include "lib/backend/backend.h"
#include "lib/base/result.h"
#include "lib/exec/program.h"
#include "lib/exec/step_graph.h"
#include "lib/exec/step_operators.h"
#include "lib/plan/plan.h"

namespace ckplan {

struct PlacedProgram {
  Program program;
  std::vector<Bytes> offsets;
  Bytes arena_bytes;
  Bytes predicted_peak;
  // Workspaces are buffers of the program; else calls work in memory outside.
  bool has_workspaces = false;
};

// The graph whose buffers a plan places: that of the step, with workspaces if the plan knows them,
// in sizes rounded up as the plan rounds them.
struct SizedGraph {
  TensorGraph graph;
  bool has_workspaces = false;
  bool has_planned_sizes = true;  // Else the plan's offsets are for tensors of other float types.
};

// `planned`: the graph that the plan was made for, before its sizes were aligned.
// kCheckFailed: the plan's workspaces are not those of the backend; names the first such node.
Result<SizedGraph> GraphToRun(const StepGraph& step, const StepOperators& operators,
                              const TensorGraph& planned, int64_t align_bytes);

// Placed anew.
PlacedProgram PlaceProgram(const StepGraph& step, const SizedGraph& run, const Schedule& schedule);
// With the plan's own offsets where they fit, else placed anew.
PlacedProgram PlaceByPlan(const StepGraph& step, const SizedGraph& run, const Plan& plan);
// Keeping everything, in the plan's forward order.
PlacedProgram PlaceKeepAll(const StepGraph& step, const SizedGraph& run, const Schedule& planned);

// The largest workspace of any node: what calls of programs without workspaces need.
Bytes LargestWorkspace(const StepOperators& operators);

}  // namespace ckplan
