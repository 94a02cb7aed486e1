// The operators of the CUDA backend by family: one list, one or two files each. registry.cc joins
// them.
#pragma once

#include <span>

#include "lib/cuda/registry.h"

namespace ckplan::cuda {

std::span<const OpRow> ActivationOps();
std::span<const OpRow> AttentionOps();
std::span<const OpRow> ConvOps();
std::span<const OpRow> EinsumOps();
std::span<const OpRow> GruOps();
std::span<const OpRow> LstmOps();
std::span<const OpRow> MatMulOps();
std::span<const OpRow> UnaryMathOps();

}  // namespace ckplan::cuda
