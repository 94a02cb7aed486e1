#include "lib/executor/core/constant_gradients.h"

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
      contributions_(step.constants.size(), 0),
      scratch_(step.constants.size(), 0) {
  CountContributions();
  AddUpScratch(constant_ops);
}

// Visits the operators from the last to the first, so that all contributions to an operator's
// outputs are known.
void ConstantGradients::CountContributions() {
  const auto add = [this](ConstantId constant, int64_t count) {
    int64_t& sum = contributions_[step_.constants[constant].root];
    sum = std::min(kManyCalls, sum + count);
  };
  for (const StepNode& node : step_.nodes) {
    for (const size_t position : node.trained_positions) add(node.inputs[position].constant, 1);
  }
  for (size_t at = step_.constant_ops.size(); at-- > 0;) {
    const ConstantOp& op = step_.constant_ops[at];
    int64_t arriving = 0;
    for (const ConstantId output : op.outputs) {
      if (!output.is_none()) arriving = std::min(kManyCalls, arriving + contributions_[output]);
    }
    for (size_t i = 0; i < op.inputs.size(); ++i) {
      if (!op.spec.inputs[i].has_gradient) continue;
      add(op.inputs[i], arriving);
      calls_ = std::min(kManyCalls, calls_ + arriving);
    }
  }
}

// Starts at the leaves, so that the scratch of an operator's inputs is known.
void ConstantGradients::AddUpScratch(const std::vector<std::unique_ptr<PreparedOp>>& constant_ops) {
  const auto own = [this](ConstantId id) {
    return AlignedBytes(step_.constants[id].operand.bytes(), backend_);
  };
  for (const ConstantId id : step_.constants.ids()) {
    if (step_.constants[id].producer < 0) scratch_[id] = own(id);
  }
  for (size_t at = 0; at < step_.constant_ops.size(); ++at) {
    const ConstantOp& op = step_.constant_ops[at];
    int64_t below = 0;
    for (size_t i = 0; i < op.inputs.size(); ++i) {
      if (!op.spec.inputs[i].has_gradient) continue;
      below = std::max(below, scratch_[step_.constants[op.inputs[i]].root]);
    }
    below += AlignedBytes(constant_ops[at]->workspace().backward, backend_);
    for (const ConstantId output : op.outputs) {
      if (!output.is_none()) scratch_[output] = own(output) + below;
    }
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
    largest = std::max(largest, scratch_[step_.constants[constant].root]);
  }
  return largest;
}

}  // namespace ckplan
