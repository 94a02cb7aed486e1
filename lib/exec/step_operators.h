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
  // In the order of StepGraph::constant_ops.
  std::vector<std::unique_ptr<PreparedOp>> constant_ops;
  // For each node, the workspace of the operator itself, followed from byte `gradient_scratch` on
  // by scratch memory for gradients of constants that cannot be written directly: see
  // constant_gradients.h.
  IdVector<NodeId, OpWorkspace> workspaces;
  IdVector<NodeId, int64_t> gradient_scratch;
};

// kInvalidInput: ONNX does not allow some of the operators. kUnsupported: the backend lacks a
// kernel for some of them; the error's notes name all operators that cannot run. Or gradients of
// parameters take too many ways.
Result<StepOperators> PrepareOperators(Backend& backend, const StepGraph& step);

// The step's graph, with the workspaces of its operators added.
Result<TensorGraph> GraphWithWorkspaces(const StepGraph& step, const StepOperators& operators);

}  // namespace ckplan
