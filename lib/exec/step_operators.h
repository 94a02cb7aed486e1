// All operators of a step, ready to run on one backend, and what memory they work in.
#pragma once

#include <memory>
#include <vector>

#include "lib/backend/backend.h"
#include "lib/base/result.h"
#include "lib/exec/step_graph.h"

namespace ckplan {

struct StepOperators {
  IdVector<NodeId, std::unique_ptr<PreparedOp>> nodes;
  std::vector<std::unique_ptr<PreparedOp>> constant_ops;  // As in StepGraph.
  // Of the operators themselves, and behind that, from `gradient_scratch` on, room for gradients of
  // constants that cannot be written where they belong at once: see constant_store.h.
  IdVector<NodeId, OpWorkspace> workspaces;
  IdVector<NodeId, int64_t> gradient_scratch;
};

// kUnsupported names all operators that the backend cannot run, at once.
Result<StepOperators> PrepareOperators(Backend& backend, const StepGraph& step);

// The step's graph with the workspaces of its operators.
Result<TensorGraph> GraphWithWorkspaces(const StepGraph& step, const StepOperators& operators);

}  // namespace ckplan
