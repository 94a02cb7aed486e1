// All operators of a step, prepared on one backend, and the scratch memory that they need.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "lib/base/result.h"
#include "lib/executor/backend/backend.h"
#include "lib/files/model/step_graph.h"

namespace ckplan {

struct StepOperators {
  IdVector<NodeId, std::unique_ptr<PreparedOp>> nodes;
  // One for each operator of StepGraph::constant_ops, in the same order.
  std::vector<std::unique_ptr<PreparedOp>> constant_ops;
  // For each node, the workspace of the operator itself. From byte `gradient_scratch` on it
  // contains scratch memory for gradients of constants that cannot be written directly; see
  // constant_gradients.h.
  IdVector<NodeId, OpWorkspace> workspaces;
  IdVector<NodeId, int64_t> gradient_scratch;

  int64_t ScratchBytes(NodeId node) const {
    return std::max<int64_t>(0, workspaces[node].backward - gradient_scratch[node]);
  }
};

// kInvalidInput: ONNX does not allow some of the operators. kUnsupported: the backend lacks a
// kernel for some of them, and the error's notes name all operators that cannot run; or the
// gradients of parameters take too many paths.
Result<StepOperators> PrepareOperators(Backend& backend, const StepGraph& step);

// Returns the step's graph with the workspaces of its operators added.
Result<TensorGraph> GraphWithWorkspaces(const StepGraph& step, const StepOperators& operators);

}  // namespace ckplan
