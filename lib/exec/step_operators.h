// All operators of a step, prepared on one backend, and the scratch memory that they need.
#pragma once

#include <memory>
#include <vector>

#include "lib/backend/backend.h"
#include "lib/base/result.h"
#include "lib/model/step_graph.h"

namespace ckplan {

struct StepOperators {
  IdVector<NodeId, std::unique_ptr<PreparedOp>> nodes;
  std::vector<std::unique_ptr<PreparedOp>> constant_ops;  // In the order of the StepGraph's.
  // What the operators themselves need, and behind that, from byte `gradient_scratch` on, room for
  // gradients of constants that cannot be written where they belong: see constant_gradients.h.
  IdVector<NodeId, OpWorkspace> workspaces;
  IdVector<NodeId, int64_t> gradient_scratch;
};

// The notes name all operators that cannot run. kInvalidInput: some of them are invalid by ONNX.
// kUnsupported: the backend lacks a kernel for them.
Result<StepOperators> PrepareOperators(Backend& backend, const StepGraph& step);

// The step's graph with the workspaces of its operators.
Result<TensorGraph> GraphWithWorkspaces(const StepGraph& step, const StepOperators& operators);

}  // namespace ckplan
