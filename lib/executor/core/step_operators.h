// All operators of a step, prepared on one backend, and the scratch memory that they need.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "lib/base/result.h"
#include "lib/executor/backend/backend.h"
#include "lib/files/model/step_graph.h"
#include "lib/problem/ops/autograd.h"
#include "lib/problem/ops/op_spec.h"

namespace ckplan {

// Operators that save for backward what PyTorch's autograd saves. Kernels have one form of each
// operator: their backward reads what op_table.def lists under `minimal`. Where PyTorch saves
// something else, an operator around the kernel keeps that:
//
//   Dropout            a mask, written by the kernel's second output; backward draws it again
//   MaxPool            indices as int64, written and read as the kernel's second output
//   LeakyRelu, Div, …  the inputs; the output, which the kernel reads, is computed again from them
//
// What PyTorch saves and no kernel reads is a tensor that is kept, and nothing else.

// Returns whether an operator of a step, whose spec is that of `autograd`, is more than a kernel.
bool SavesByItself(const OpSpec& spec, Autograd autograd);

// Prepares such an operator, or the kernel alone. kUnsupported: PyTorch saves something that no
// kernel can write.
Result<std::unique_ptr<PreparedOp>> PrepareSaving(Backend& backend, const OpSpec& spec,
                                                  Autograd autograd);

struct StepOperators {
  IdVector<NodeId, std::unique_ptr<PreparedOp>> nodes;
  // One for each operator of StepGraph::constant_ops, in the same order.
  std::vector<std::unique_ptr<PreparedOp>> constant_ops;
  // For each node, the workspace of the operator itself. From byte `gradient_scratch` on it
  // contains scratch memory for gradients of constants that cannot be written directly; see
  // constant_store.h.
  IdVector<NodeId, OpWorkspace> workspaces;
  IdVector<NodeId, int64_t> gradient_scratch;
  // Says which operators the host computes for the device; empty if none.
  std::vector<std::string> notes;
  bool runs_on_host = false;  // Whether it computes some of them in each step.

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
