// How the gradient of a constant operand reaches the trained leaves behind it.
//
//   W ─▶ Transpose ─▶ Wt ─▶ MatMul        backward of MatMul writes dWt into scratch,
//                                         backward of Transpose turns it into dW, added to W's
//
// A trained constant (leaf) that a single node reads, itself or through a view, has its gradient
// written directly to where it is kept. All other gradients are computed in scratch memory, which
// is part of the node's workspace, and added up. They are added in the order of the backward steps,
// so the result does not depend on what a plan recomputes.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "lib/backend/backend.h"
#include "lib/model/step_graph.h"

namespace ckplan {

// The alignment of memory that no plan places: a cache line, so that no two pieces share one, or
// more if the backend needs more.
int64_t BufferAlignment(const Backend& backend);
int64_t AlignedBytes(int64_t bytes, const Backend& backend);  // Rounded up to BufferAlignment.

class ConstantGradients {
 public:
  ConstantGradients(const Backend& backend, const StepGraph& step,
                    const std::vector<std::unique_ptr<PreparedOp>>& constant_ops);

  // Whether backward may write this constant's gradient directly into the gradient of its leaf.
  bool IsDirect(ConstantId constant) const;
  // The scratch memory that the gradients of the node's constants need; 0 if all of them are
  // direct.
  int64_t ScratchBytes(const StepNode& node) const;
  // The scratch memory for the gradient of `root` and for all that is computed from it on the way
  // to the leaves.
  int64_t ScratchBytes(ConstantId root) const;

 private:
  void Count(ConstantId constant);

  const Backend& backend_;
  const StepGraph& step_;
  const std::vector<std::unique_ptr<PreparedOp>>& constant_ops_;
  // How many contributions to its gradient each root receives in one step.
  IdVector<ConstantId, int32_t> contributions_;
};

}  // namespace ckplan
