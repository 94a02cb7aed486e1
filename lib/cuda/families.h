// The operators of the CUDA backend by family: one list, one or two files each. registry.cc joins
// them.
#pragma once

#include <span>

#include "lib/cuda/registry.h"

namespace ckplan::cuda {

std::span<const OpRow> ActivationOps();
std::span<const OpRow> AttentionOps();
std::span<const OpRow> BatchNormOps();
std::span<const OpRow> BinaryOps();
std::span<const OpRow> ClipCastOps();
std::span<const OpRow> ConvOps();
std::span<const OpRow> EinsumOps();
std::span<const OpRow> ElementOps();
std::span<const OpRow> ExtremeOps();
std::span<const OpRow> GatherOps();
std::span<const OpRow> GenerateOps();
std::span<const OpRow> GroupNormOps();
std::span<const OpRow> GruOps();
std::span<const OpRow> JoinOps();
std::span<const OpRow> LayerNormOps();
std::span<const OpRow> LogicOps();
std::span<const OpRow> LossOps();
std::span<const OpRow> LpNormOps();
std::span<const OpRow> LrnOps();
std::span<const OpRow> LstmOps();
std::span<const OpRow> MatMulOps();
std::span<const OpRow> MeanVarianceNormOps();
std::span<const OpRow> MoveOps();
std::span<const OpRow> NaryOps();
std::span<const OpRow> PadOps();
std::span<const OpRow> PoolOps();
std::span<const OpRow> RandomOps();
std::span<const OpRow> ReduceOps();
std::span<const OpRow> ResizeOps();
std::span<const OpRow> ReverseOps();
std::span<const OpRow> RotaryOps();
std::span<const OpRow> RunningSumOps();
std::span<const OpRow> SoftmaxOps();
std::span<const OpRow> TopKOps();
std::span<const OpRow> UnaryMathOps();

}  // namespace ckplan::cuda
