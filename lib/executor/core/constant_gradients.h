// How the gradient of a constant operand reaches the trained leaves that it is computed from.
//
//   W ─▶ Transpose ─▶ Wt ─▶ MatMul        backward of MatMul writes dWt into scratch,
//                                         backward of Transpose turns it into dW, added to W's
//
// A trained constant (leaf) that a single node reads, itself or through a view, has its gradient
// written directly to where it is kept. All other gradients are computed in scratch memory, which
// is part of the node's workspace, and added up. They are added in the order of the backward steps,
// which is the same in all plans (Node::shared_parameters), so the result does not depend on what a
// plan recomputes.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "lib/executor/backend/backend.h"
#include "lib/files/model/step_graph.h"

namespace ckplan {

// The alignment of memory that no plan places: a cache line, so that no two pieces share one, or
// more if the backend needs more.
int64_t BufferAlignment(const Backend& backend);
int64_t AlignedBytes(int64_t bytes, const Backend& backend);  // Rounded up to BufferAlignment.

class ConstantGradients {
 public:
  ConstantGradients(const Backend& backend, const StepGraph& step,
                    const std::vector<std::unique_ptr<PreparedOp>>& constant_ops);

  // Returns whether backward may write this constant's gradient directly into its leaf's gradient.
  bool IsDirect(ConstantId constant) const;
  // Returns the bytes of scratch memory that the gradients of the node's constants need; 0 if all
  // of them are direct.
  int64_t ScratchBytes(const StepNode& node) const;
  // Returns how many gradients the constant operators compute in one step, at most kManyCalls. Each
  // contribution takes every path to the leaves separately, and there may be exponentially many
  // paths: w2 = w + w, w4 = w2 + w2, and so on.
  int64_t calls() const { return calls_; }
  static constexpr int64_t kManyCalls = int64_t{1} << 40;

 private:
  void CountContributions();
  void AddUpScratch(const std::vector<std::unique_ptr<PreparedOp>>& constant_ops);

  const Backend& backend_;
  const StepGraph& step_;
  // The number of contributions that each root's gradient receives in one step, at most kManyCalls.
  IdVector<ConstantId, int64_t> contributions_;
  // The bytes of scratch memory for the gradient of a root and for all gradients that are computed
  // from it on the way to the leaves.
  IdVector<ConstantId, int64_t> scratch_;
  int64_t calls_ = 0;
};

}  // namespace ckplan
