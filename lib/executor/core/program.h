// A schedule expanded into a sequence of allocations, calls and releases, with the buffer of each
// operand. The same replay produces the program and the timeline, so a program allocates the
// timeline's buffers in the same order.
//
//   step 7: backward relu      allocate g9 │ call relu.backward(input 0 → g9) │ release g7, t3
//
// A program can run once each of its buffers has a place in the arena.
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
  kLoss,      // Writes the gradient of the graph's output `position` to `buffer`.
  // `call` runs backward for the input at `position` and writes `buffer`. If `buffer` is kNoBuffer,
  // it writes the gradient of the constant at that position.
  kBackward,
  kAdd,   // `buffer` += `from`.
  kCopy,  // `buffer` = `from`.
  // Copies over the link to the host. `copy` is the copy in host memory.
  kOut,     // Begins copying `buffer` to the host.
  kDrop,    // Waits until that copy is complete.
  kIn,      // Begins copying the host copy to `buffer`.
  kArrive,  // Waits until that copy is complete.
  kForget,  // The host copy ends.
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

// The buffers of one forward or backward step. Each list has one entry per operand of the operator;
// kNoBuffer if the operand is absent, a constant, or a graph input.
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
  std::vector<ProgramBuffer> buffers;  // The timeline's buffers, in its order.
  std::vector<HostCopy> copies;        // Host copies, in the order in which they begin.
  // The buffers that hold the graph outputs when the loss is computed.
  std::vector<int32_t> output_buffers;
  size_t steps = 0;
};

// Builds the program of a schedule, which may include transfers (lib/problem/schedule/transfers.h).
//
// `graph` is the step's graph, possibly with workspaces and aligned sizes; `timeline` is the
// timeline of `graph` and `schedule`.
Program BuildProgram(const StepGraph& step, const TensorGraph& graph, const Schedule& schedule,
                     const Timeline& timeline);

// A program, and the place of each buffer in the arena.
class ArenaMemory;  // buffer_memory.h
struct Plan;

struct PlacedProgram {
  Program program;
  std::vector<Bytes> offsets;
  Bytes arena_bytes;
  Bytes predicted_peak;
  // Describe the host copies. Empty or zero without copies.
  std::vector<Bytes> host_offsets;
  Bytes host_bytes;  // The size of the block that contains them.
  Bytes predicted_host_peak;
  bool is_half_duplex = false;
  // True if the workspaces of all operators are buffers of the program. Otherwise those that don't
  // fit in a buffer lie outside the arena.
  bool has_workspaces = false;
};

// The step's graph with the sizes that the arena uses: the plan's workspaces, and sizes rounded up
// as in the plan. A plan may know the backend's (measured) workspaces, PyTorch's temporary tensors
// (lib/problem/ops/work.h), or neither.
struct SizedGraph {
  TensorGraph graph;
  bool has_workspaces = false;  // The backend's workspaces.
  // False if the plan was made for other float types, so that its offsets don't fit.
  bool has_planned_sizes = true;
};

enum class PlannedWorkspaces { kMeasured, kTemporaries };
PlannedWorkspaces WorkspacesOf(const Plan& plan);

// `planned` is the graph that the plan was made for, before its sizes were aligned. kCheckFailed:
// the measured workspaces differ from the backend's; the message names the first such node.
Result<SizedGraph> GraphToRun(const StepGraph& step, const StepOperators& operators,
                              const TensorGraph& planned, PlannedWorkspaces workspaces,
                              int64_t align_bytes);

// Places the schedule at newly computed offsets.
PlacedProgram PlaceProgram(const StepGraph& step, const SizedGraph& run, const Schedule& schedule);
// Places the plan's schedule, at the plan's own offsets where they fit. A plan that copies to the
// host was made for a joint graph, whose buffers differ from the step's, so only its host offsets
// are used. kCheckFailed: the schedule is not a training step of the graph. ArenaMemory and
// HostCopies check the offsets.
Result<PlacedProgram> PlaceByPlan(const StepGraph& step, const SizedGraph& run, const Plan& plan);
// Place the schedule that keeps everything. Its order computes the same gradients as the plan, bit
// for bit.
PlacedProgram PlaceKeepAll(const StepGraph& step, const SizedGraph& run, const Schedule& planned);
PlacedProgram PlaceKeepAll(const StepGraph& step, const SizedGraph& run, const Plan& plan);

// Allocates the program's memory: an arena, and a block of host memory if the program copies to the
// host. With `poisons`, the arena can prove a plan (see ArenaMemory), and copies happen as late as
// the link allows.
Result<std::unique_ptr<ArenaMemory>> ArenaFor(Backend& backend, const PlacedProgram& placed,
                                              bool poisons);

// Returns the largest workspace of any node. A program without workspaces needs this much memory
// outside the arena.
Bytes LargestWorkspace(const StepOperators& operators);

}  // namespace ckplan
