// A schedule ready to be run: its program, and the place of each buffer in the arena.
#pragma once

#include <memory>
#include <vector>

#include "lib/base/result.h"
#include "lib/executor/backend/backend.h"
#include "lib/executor/core/buffer_memory.h"
#include "lib/executor/core/program.h"
#include "lib/executor/core/step_operators.h"
#include "lib/files/model/step_graph.h"

namespace ckplan {

struct Plan;

struct PlacedProgram {
  Program program;
  std::vector<Bytes> offsets;
  Bytes arena_bytes;
  Bytes predicted_peak;
  // These describe the copies on the host. All are empty or zero if the schedule makes none.
  std::vector<Bytes> host_offsets;
  Bytes host_bytes;  // The size of the block that they lie in.
  Bytes predicted_host_peak;
  bool is_half_duplex = false;
  // Whether the workspaces of all operators are buffers of the program. If not, those for which a
  // buffer has no room lie outside the arena.
  bool has_workspaces = false;
};

// The graph of the step with the sizes that are placed in the arena: with the plan's workspaces,
// and with sizes rounded up as in the plan. A plan may know the workspaces of the backend's
// operators (they were measured), or PyTorch's temporary tensors
// (lib/problem/ops/work.h), or neither.
struct SizedGraph {
  TensorGraph graph;
  bool has_workspaces = false;  // Those of the backend's operators.
  // False if the plan was made for other float types, so that its offsets do not fit.
  bool has_planned_sizes = true;
};

enum class PlannedWorkspaces { kMeasured, kTemporaries };
PlannedWorkspaces WorkspacesOf(const Plan& plan);

// `planned` is the graph that the plan was made for, before its sizes were aligned. kCheckFailed:
// the workspaces that were measured differ from the backend's; the message names the first such
// node.
Result<SizedGraph> GraphToRun(const StepGraph& step, const StepOperators& operators,
                              const TensorGraph& planned, PlannedWorkspaces workspaces,
                              int64_t align_bytes);

// Places the schedule with newly computed offsets.
PlacedProgram PlaceProgram(const StepGraph& step, const SizedGraph& run, const Schedule& schedule);
// Places the plan's schedule, with the plan's own offsets where they fit. A plan that copies to the
// host is one of a joint graph, whose buffers are others than the step's, so only its offsets on
// the host are used. kCheckFailed: the schedule is no training step of the graph. ArenaMemory and
// HostCopies check the offsets.
Result<PlacedProgram> PlaceByPlan(const StepGraph& step, const SizedGraph& run, const Plan& plan);
// Place the schedule that keeps everything. Its order computes the same gradients as the plan, bit
// for bit.
PlacedProgram PlaceKeepAll(const StepGraph& step, const SizedGraph& run, const Schedule& planned);
PlacedProgram PlaceKeepAll(const StepGraph& step, const SizedGraph& run, const Plan& plan);

// Returns the memory of the program: an arena, and a block of the host's memory if it copies
// there. With `poisons` the arena is one that proves a plan: see ArenaMemory. The copies are then
// made as late as the link can.
Result<std::unique_ptr<ArenaMemory>> ArenaFor(Backend& backend, const PlacedProgram& placed,
                                              bool poisons);

// Returns the largest workspace of any node. A program without workspaces needs this much memory
// outside the arena.
Bytes LargestWorkspace(const StepOperators& operators);

}  // namespace ckplan
