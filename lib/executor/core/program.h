// A schedule expanded into every allocation, call and release, in order, with the buffer of each
// operand. The program and the timeline are made by the same replay, so a program allocates the
// buffers that the timeline counts, in the same order.
//
//   step 7: backward relu      allocate g9 │ call relu.backward(input 0 → g9) │ release g7, t3
//
// A program is ready to be run once each of its buffers has a place in the arena.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "lib/base/result.h"
#include "lib/executor/backend/backend.h"
#include "lib/executor/core/step_operators.h"
#include "lib/files/model/step_graph.h"
#include "lib/problem/graph/tensor_graph.h"
#include "lib/problem/schedule/schedule.h"
#include "lib/problem/schedule/timeline.h"
#include "lib/problem/schedule/transfers.h"

namespace ckplan {

inline constexpr int32_t kNoBuffer = -1;

enum class ActionKind : uint8_t {
  kAllocate,  // `buffer` begins.
  kRelease,   // `buffer` ends.
  kForward,   // `call` runs forward.
  kLoss,      // The gradient of output `position` of the graph is written into `buffer`.
  // `call` runs backward for the input at `position`, into `buffer`, or, if that is kNoBuffer, into
  // the gradient of the constant at that position.
  kBackward,
  kAdd,   // `buffer` += `from`.
  kCopy,  // `buffer` = `from`.
  // Copies over the link to the host; `copy` is the one on the host.
  kOut,     // Begins to copy `buffer` to the host.
  kDrop,    // Waits until that copy is complete.
  kIn,      // Begins to copy the host's copy into `buffer`.
  kArrive,  // Waits until that copy is complete.
  kForget,  // The host's copy ends.
};

struct Action {
  ActionKind kind = ActionKind::kAllocate;
  int32_t step = 0;
  int32_t buffer = kNoBuffer;
  int32_t from = kNoBuffer;
  int32_t call = -1;
  int32_t position = -1;
  int32_t copy = -1;
};

// The buffers of one forward or backward step. Each list has one entry for each operand of the
// operator; kNoBuffer where the operand is absent, a constant, or an input of the graph.
struct Call {
  NodeId node;
  bool is_recomputation = false;
  std::vector<int32_t> inputs;
  std::vector<int32_t> outputs;
  std::vector<int32_t> output_gradients;  // Empty for forward.
  int32_t statistic = kNoBuffer;
  int32_t workspace = kNoBuffer;
};

struct ProgramBuffer {
  BufferKind kind = BufferKind::kTensor;
  TensorId tensor;  // See Buffer in timeline.h.
  NodeId node;
  Bytes bytes;
};

struct Program {
  std::vector<Action> actions;
  std::vector<Call> calls;
  std::vector<ProgramBuffer> buffers;  // The buffers of the timeline, in its order.
  std::vector<HostCopy> copies;        // On the host, in the order in which they begin.
  // The buffers that hold the graph's outputs when the loss is computed.
  std::vector<int32_t> output_buffers;
  size_t steps = 0;
};

// A schedule may have transfers (lib/problem/schedule/transfers.h).
//
// `graph` is the step's graph, possibly with workspaces and aligned sizes; `timeline` is the
// timeline of `graph` and `schedule`.
Program BuildProgram(const StepGraph& step, const TensorGraph& graph, const Schedule& schedule,
                     const Timeline& timeline);

// A schedule ready to be run: its program, and the place of each buffer in the arena.
class ArenaMemory;  // buffer_memory.h
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
