// The loss of one output of a training step, for backends that compute it.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/problem/ops/op_spec.h"

namespace ckplan {

enum class LossKind {
  kGiven,         // The output's gradient comes from a seed; the loss is their inner product.
  kCrossEntropy,  // Mean of softmax cross-entropy against labels from a seed.
};

// Returns the axis of an output that holds the scores of the classes: the second axis of [N, C] and
// of images [N, C, H, W], the last axis of sequences [N, T, C].
inline size_t ClassAxis(const std::vector<int64_t>& dims) {
  if (dims.size() == 3) return 2;
  return dims.size() < 2 ? 0 : 1;
}

struct LossCall {
  LossKind kind = LossKind::kGiven;
  uint64_t seed = 0;  // Each output has its own.
  const Operand& output;
  const void* contents = nullptr;
  void* gradient = nullptr;
};

}  // namespace ckplan
