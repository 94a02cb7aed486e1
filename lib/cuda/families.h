// The operators of the CUDA backend by family: one list, one or two files each. registry.cc joins
// them.
#pragma once

#include <span>

#include "lib/cuda/registry.h"

namespace ckplan::cuda {

std::span<const OpRow> ActivationOps();
std::span<const OpRow> ElementOps();
std::span<const OpRow> GatherOps();
std::span<const OpRow> GenerateOps();
std::span<const OpRow> JoinOps();
std::span<const OpRow> MoveOps();
std::span<const OpRow> PadOps();
std::span<const OpRow> ResizeOps();
std::span<const OpRow> ReverseOps();
std::span<const OpRow> RunningSumOps();
std::span<const OpRow> UnaryMathOps();

}  // namespace ckplan::cuda
