// Recognizes the formulas of PyTorch's pointwise losses. They are one operation for PyTorch, but
// its exporter decomposes all but mse_loss:
//
//   huber_loss        Where(z < d, z z / 2, d (z - d / 2)), where z = |x - t|
//   smooth_l1_loss    Where(z < d, z ^ 2 / 2 / d, z - d / 2)
//   mse_loss          (x - t) (x - t)
//   soft_margin_loss  log(1 + exp(-x t))
//   binary_cross_entropy
//                     (t - 1) max(log(1 - x), -100) - t max(log(x), -100)
//   binary_cross_entropy_with_logits
//                     (1 - t) x - log_sigmoid(x), or (1 - t) x - (1 + (p - 1) t) log_sigmoid(x)
//
// The last two may be multiplied by a weight.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/files/model/model_impl.h"
#include "lib/files/model/operation_patterns.h"

namespace ckplan {

struct PointwiseLoss {
  onnx::NodeProto node;  // PointwiseLoss: see lib/problem/ops/softmax.h.
  std::vector<ValueIndex> inputs;
  std::string origin;              // "aten.huber_loss"
  std::vector<size_t> operations;  // What the node stands for, in the order of the file.
};

// Returns the loss that ends at this operation: at its mean or sum, or at the losses of all
// elements if these are read otherwise. A formula written by hand is no loss of PyTorch. Files of
// ckplan.torch.export say which is one; in others, one line of a module must have made all of it.
// Log(Sigmoid) must have been restored before.
std::optional<PointwiseLoss> PointwiseLossAt(const OperationPatterns& patterns, size_t index);

}  // namespace ckplan
