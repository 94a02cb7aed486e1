// A schedule expanded into every allocation, call and release, in order, with the buffer of each
// operand. The program and the timeline are made by the same replay, so a program allocates the
// buffers that the timeline counts, in the same order.
//
//   step 7: backward relu      allocate g9 │ call relu.backward(input 0 → g9) │ release g7, t3
#pragma once

#include <cstdint>
#include <vector>

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

}  // namespace ckplan
