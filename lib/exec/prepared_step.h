// All operators of a step, ready to run on one backend, and what memory they work in.
#pragma once

#include <memory>
#include <vector>

#include "lib/backend/backend.h"
#include "lib/base/result.h"
#include "lib/exec/step_model.h"

namespace ckplan {

struct PreparedStep {
  IdVector<NodeId, std::unique_ptr<PreparedOp>> nodes;
  std::vector<std::unique_ptr<PreparedOp>> constant_ops;  // As in StepModel.
  // Of the operators themselves, and behind that, from `gradient_scratch` on, room for gradients of
  // constants that cannot be written where they belong at once: see constant_store.h.
  IdVector<NodeId, OpWorkspace> workspaces;
  IdVector<NodeId, int64_t> gradient_scratch;
};

// kUnsupported names all operators that the backend cannot run, at once.
Result<PreparedStep> PrepareStep(Backend& backend, const StepModel& step);

// The step's graph with the workspaces of its operators.
Result<TensorGraph> GraphWithWorkspaces(const StepModel& step, const PreparedStep& prepared);

}  // namespace ckplan
