// The loss function of a training step, and the gradients of the outputs that it computes.
#pragma once

#include <cstdint>
#include <string_view>

#include "lib/backend/backend.h"
#include "lib/base/result.h"
#include "lib/model/step_graph.h"
#include "lib/ops/op_spec.h"

namespace ckplan {

enum class LossKind {
  kGiven,         // The output's gradient comes from a seed; the loss is their inner product.
  kCrossEntropy,  // Mean of softmax cross-entropy against labels from a seed.
};

std::string_view NameOf(LossKind kind);

// kUnsupported: an output without classes has no cross-entropy. Must succeed before a Loss is run.
Result<Done> RequireLoss(LossKind kind, const StepGraph& step);

class Loss {
 public:
  Loss(LossKind kind, uint64_t seed) : kind_(kind), seed_(seed) {}

  LossKind kind() const { return kind_; }
  // Returns the loss of one output and writes its gradient into `gradient`. The loss of a step is
  // the sum over its outputs. `contents` and `gradient` are device memory and hold floats of the
  // output's type; the loss is computed on the host, in float32 or wider types.
  double Run(Backend& backend, std::string_view name, const Operand& output, const void* contents,
             void* gradient) const;

 private:
  LossKind kind_;
  uint64_t seed_;
};

// Returns the axis of an output that holds the scores of the classes: the second axis of [N, C] and
// of images [N, C, H, W], the last axis of sequences [N, T, C].
size_t ClassAxis(const std::vector<int64_t>& dims);

}  // namespace ckplan
