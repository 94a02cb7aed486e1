// The loss function of a training step, and the output gradients that it computes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "lib/base/result.h"
#include "lib/executor/backend/backend.h"
#include "lib/files/model/step_graph.h"
#include "lib/problem/ops/op_spec.h"

namespace ckplan {

// Contents generated from a seed: weights missing from the file, the input batch, and output
// gradients. The same seed and name give the same contents on every machine.

uint64_t SeedFor(uint64_t seed, std::string_view name);

// Returns floats uniformly distributed in [low, high).
std::vector<float> UniformFloats(uint64_t seed, int64_t count, float low, float high);

// `constant` is a trained leaf, or a constant with unknown contents. Weights are uniform with
// variance 2 / fan_in (He et al. 2015), scales are around 1, shifts around 0, and indices below
// their bound.
std::vector<std::byte> SeededConstant(uint64_t seed, const StepConstant& constant);

// Floats have mean 0 and variance 1, and are rounded for a bfloat16 input. Indices are below their
// bound. Other integers and booleans are 1, so that masks hide nothing.
std::vector<std::byte> SeededInput(uint64_t seed, const StepInput& input);

std::string_view NameOf(LossKind kind);

// kUnsupported: the loss is cross-entropy and an output has no classes. Must succeed before
// Loss::Run.
Result<Done> RequireLoss(LossKind kind, const StepGraph& step);

class Loss {
 public:
  Loss(LossKind kind, uint64_t seed) : kind_(kind), seed_(seed) {}

  LossKind kind() const { return kind_; }
  // Returns the loss of one output and writes its gradient to `gradient`. The loss of a step is the
  // sum over its outputs. `contents` and `gradient` are device memory with floats of the output's
  // type. The backend or the host computes the loss, with bitwise equal results.
  double Run(Backend& backend, std::string_view name, const Operand& output, const void* contents,
             void* gradient) const;

 private:
  LossKind kind_;
  uint64_t seed_;
};

// Returns the loss of an output with these values, computed in float32 or wider types, and replaces
// the values with their gradient, rounded to the output's type. `seed` is the output's seed.
double LossOnHost(LossKind kind, uint64_t seed, const Operand& output, std::vector<float>& values);

}  // namespace ckplan
