// Contents generated from a seed: weights that the file lacks, the input batch, and gradients of
// the outputs. The same seed and name give the same contents on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "lib/files/model/step_graph.h"

namespace ckplan {

uint64_t SeedFor(uint64_t seed, std::string_view name);

// Returns floats that are uniformly distributed in [low, high).
std::vector<float> UniformFloats(uint64_t seed, int64_t count, float low, float high);

// `constant` is a trained leaf, or a constant whose contents are unknown. Weights are uniform with
// variance 2 / fan_in (He et al. 2015), scales are around 1, shifts around 0, and indices below
// their bound.
std::vector<std::byte> SeededConstant(uint64_t seed, const StepConstant& constant);

// Floats have mean 0 and variance 1, indices are below their bound, and other integers and booleans
// are 1, so that masks hide nothing. Floats of a bfloat16 input are rounded.
std::vector<std::byte> SeededInput(uint64_t seed, const StepInput& input);

}  // namespace ckplan
