// The loss function of a training step, and the gradients of the outputs that it computes.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "lib/base/result.h"
#include "lib/executor/backend/backend.h"
#include "lib/files/model/step_graph.h"
#include "lib/problem/ops/op_spec.h"

namespace ckplan {

std::string_view NameOf(LossKind kind);

// kUnsupported: an output without classes has no cross-entropy. Must succeed before a Loss is run.
Result<Done> RequireLoss(LossKind kind, const StepGraph& step);

class Loss {
 public:
  Loss(LossKind kind, uint64_t seed) : kind_(kind), seed_(seed) {}

  LossKind kind() const { return kind_; }
  // Returns the loss of one output and writes its gradient into `gradient`. The loss of a step is
  // the sum over its outputs. `contents` and `gradient` are device memory and hold floats of the
  // output's type. The backend computes the loss, or else the host, to the same bits.
  double Run(Backend& backend, std::string_view name, const Operand& output, const void* contents,
             void* gradient) const;

 private:
  LossKind kind_;
  uint64_t seed_;
};

// Returns the loss of an output with these values, computed in float32 or wider types, and replaces
// them by their gradient, which is rounded to the output's type. `seed` is that of the output.
double LossOnHost(LossKind kind, uint64_t seed, const Operand& output, std::vector<float>& values);

}  // namespace ckplan
