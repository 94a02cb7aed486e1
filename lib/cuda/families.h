// The operators of the CUDA backend by family: one list, one or two files each. registry.cc joins
// them.
#pragma once

#include <span>

#include "lib/cuda/registry.h"

namespace ckplan::cuda {

std::span<const OpRow> ActivationOps();
std::span<const OpRow> AveragePoolOps();
std::span<const OpRow> BatchNormOps();
std::span<const OpRow> ExtremeOps();
std::span<const OpRow> GroupNormOps();
std::span<const OpRow> LayerNormOps();
std::span<const OpRow> LpNormOps();
std::span<const OpRow> LrnOps();
std::span<const OpRow> MaxPoolOps();
std::span<const OpRow> MeanVarianceNormOps();
std::span<const OpRow> ReduceOps();
std::span<const OpRow> SoftmaxOps();
std::span<const OpRow> UnaryMathOps();

}  // namespace ckplan::cuda
