#include "lib/exec/constant_gradients.h"

#include <algorithm>

namespace ckplan {

int64_t BufferAlignment(const Backend& backend) {
  constexpr int64_t kCacheLine = 64;
  return std::max(kCacheLine, backend.alignment());  // Both powers of two.
}

int64_t AlignedBytes(int64_t bytes, const Backend& backend) {
  const int64_t alignment = BufferAlignment(backend);
  return (bytes + alignment - 1) / alignment * alignment;
}

ConstantGradients::ConstantGradients(const Backend& backend, const StepGraph& step,
                                     const std::vector<std::unique_ptr<PreparedOp>>& constant_ops)
    : backend_(backend),
      step_(step),
      constant_ops_(constant_ops),
      contributions_(step.constants.size(), 0) {
  for (const StepNode& node : step_.nodes) {
    for (const size_t position : node.trained_positions) Count(node.inputs[position].constant);
  }
}

void ConstantGradients::Count(ConstantId constant) {
  const ConstantId root = step_.constants[constant].root;
  ++contributions_[root];
  const int32_t producer = step_.constants[root].producer;
  if (producer < 0) return;
  const ConstantOp& op = step_.constant_ops[static_cast<size_t>(producer)];
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    if (op.spec.inputs[i].has_gradient) Count(op.inputs[i]);
  }
}

bool ConstantGradients::IsDirect(ConstantId constant) const {
  const ConstantId root = step_.constants[constant].root;
  return step_.constants[root].producer < 0 && contributions_[root] == 1;
}

int64_t ConstantGradients::ScratchBytes(const StepNode& node) const {
  int64_t largest = 0;
  for (const size_t position : node.trained_positions) {
    const ConstantId constant = node.inputs[position].constant;
    if (IsDirect(constant)) continue;
    largest = std::max(largest, ScratchBytes(step_.constants[constant].root));
  }
  return largest;
}

int64_t ConstantGradients::ScratchBytes(ConstantId root) const {
  const StepConstant& constant = step_.constants[root];
  int64_t below = 0;
  if (constant.producer >= 0) {
    const auto at = static_cast<size_t>(constant.producer);
    const ConstantOp& op = step_.constant_ops[at];
    for (size_t i = 0; i < op.inputs.size(); ++i) {
      if (!op.spec.inputs[i].has_gradient) continue;
      below = std::max(below, ScratchBytes(step_.constants[op.inputs[i]].root));
    }
    below += AlignedBytes(constant_ops_[at]->workspace().backward, backend_);
  }
  return AlignedBytes(constant.operand.bytes(), backend_) + below;
}

}  // namespace ckplan
