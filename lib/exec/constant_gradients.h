// How the gradient of a constant operand reaches the trained leaves behind it.
//
//   W ─▶ Transpose ─▶ Wt ─▶ MatMul        backward of MatMul writes dWt into scratch,
//                                         backward of Transpose turns it into dW, added to W's
//
// A leaf that a single node reads, itself or as a view, has its gradient written where it belongs;
// all others are added up from scratch memory, which is part of the node's workspace. The order of
// additions is that of the backward steps, so it does not depend on what a plan recomputes.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "lib/backend/backend.h"
#include "lib/model/step_graph.h"

namespace ckplan {

// The alignment of areas of memory that no plan places: a cache line, so that no two areas share
// one, or more where the backend needs more.
int64_t BufferAlignment(const Backend& backend);
int64_t AlignedBytes(int64_t bytes, const Backend& backend);  // Rounded up to it.

class ConstantGradients {
 public:
  ConstantGradients(const Backend& backend, const StepGraph& step,
                    const std::vector<std::unique_ptr<PreparedOp>>& constant_ops);

  // Whether backward may write this constant's gradient straight into that of its leaf.
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
  IdVector<ConstantId, int32_t> contributions_;  // How many each root receives in one step.
};

}  // namespace ckplan
