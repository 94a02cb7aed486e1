// Finds attention in a step that was exported operator by operator, and gives it PyTorch's kernels.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "cli/ckbench/torch_kernels.h"

namespace ckplan {

// The operators that make and that read each tensor of a step.
class StepLinks {
 public:
  explicit StepLinks(const StepGraph& step);
  NodeId ProducerOf(TensorId tensor) const;  // Invalid for inputs of the graph.
  const std::vector<NodeId>& ReadersOf(TensorId tensor) const { return readers_[tensor]; }
  std::string_view TypeOf(NodeId node) const { return step_.nodes[node].spec.type; }

 private:
  const StepGraph& step_;
  IdVector<TensorId, NodeId> producer_;
  IdVector<TensorId, std::vector<NodeId>> readers_;
};

// The nodes that PyTorch runs as scaled_dot_product_attention.
struct AttentionNodes {
  NodeId scores;  // MatMul of queries and keys.
  NodeId softmax;
  NodeId output;  // MatMul of probabilities and values.
  bool has_mask = false;
  std::vector<NodeId> others;  // Scales, mask, transposes, IsNaN and Where.
};

std::optional<AttentionNodes> FindAttention(const StepGraph& step, const StepLinks& links,
                                            NodeId softmax);

// The kernels of an attention that is one operator of the step.
TorchNode TorchAttentionKernels(const OpSpec& spec, TorchAttention attention);

// Gives the kernels of all nodes of the attention to the MatMul of probabilities and values.
void ReplaceAttention(const StepGraph& step, const AttentionNodes& nodes, TorchAttention attention,
                      IdVector<NodeId, TorchNode>& torch);

}  // namespace ckplan
