// Contents made from a seed: weights that the file lacks, the batch, gradients of the outputs. The
// same seed and name give the same contents everywhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "lib/exec/step_graph.h"

namespace ckplan {

uint64_t SeedFor(uint64_t seed, std::string_view name);

// Uniform in [low, high).
std::vector<float> UniformFloats(uint64_t seed, int64_t count, float low, float high);

// A trained leaf, or a constant whose contents are unknown. Weights: uniform of variance 2 / fan_in
// (He et al. 2015), scales around 1, shifts around 0, indices below their bound.
std::vector<std::byte> SeededConstant(uint64_t seed, const StepConstant& constant);

// In the operand's own type: floats are rounded to bfloat16 where that is it.
// Floats of variance 1 around 0, indices below their bound, other integers and booleans 1: masks
// let everything through.
std::vector<std::byte> SeededInput(uint64_t seed, const StepInput& input);

}  // namespace ckplan
