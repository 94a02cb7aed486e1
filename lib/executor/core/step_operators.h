// All operators of a step, prepared on one backend, and their scratch memory.
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

// Operators that save what PyTorch's autograd saves for backward. Each operator has one kernel,
// whose backward reads what op_table.def lists under `minimal`. Where PyTorch saves something else,
// a wrapper around the kernel saves that:
//
//   Dropout            a mask, written by the kernel's second output; backward redraws it
//   MaxPool            indices as int64, written and read as the kernel's second output
//   LeakyRelu, Div, …  the inputs; the output, which the kernel reads, is computed again from them
//
// Tensors that PyTorch saves but no kernel reads are simply kept.

// True if a step's operator, with its spec for `autograd`, needs a wrapper around its kernel.
bool NeedsWrapper(const OpSpec& spec, Autograd autograd);

// Prepares such a wrapper, or the kernel alone. kUnsupported: PyTorch saves something that no
// kernel can write.
Result<std::unique_ptr<PreparedOp>> PrepareSaving(Backend& backend, const OpSpec& spec,
                                                  Autograd autograd);

struct StepOperators {
  IdVector<NodeId, std::unique_ptr<PreparedOp>> nodes;
  // Parallel to StepGraph::constant_ops.
  std::vector<std::unique_ptr<PreparedOp>> constant_ops;
  // Each node's workspace. From byte `gradient_scratch` on, it holds scratch memory for gradients
  // of constants that cannot be written directly (constant_store.h).
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
// kernel for some of them (the error's notes name all operators that cannot run), or the parameter
// gradients take too many paths.
Result<StepOperators> PrepareOperators(Backend& backend, const StepGraph& step);

// Adds the operators' workspaces to the step's graph.
Result<TensorGraph> GraphWithWorkspaces(const StepGraph& step, const StepOperators& operators);

}  // namespace ckplan
