// The CUDA backend's operator table, joined in registry.cc, and its fused operators.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "lib/executor/backend/backend.h"
#include "lib/executor/backend/op_rows.h"
#include "lib/executor/cuda/device.h"

namespace ckplan::cuda {

using PrepareFunction = Result<std::unique_ptr<PreparedOp>> (*)(const OpSpec& spec, Device& device);
using OpRow = OpRowOf<PrepareFunction>;

const OpTable<OpRow>& Table();

// Returns UnsupportedOp for this backend.
Error Unsupported(const OpSpec& spec, std::string_view what);

// The families that have kernels, one or two files each in ops/. registry.cc joins them. Operators
// of no such family are in the table without a function: the host computes them (host_fallback.h).
// clang-format off
#define CKPLAN_CUDA_FAMILIES(X)                                                              \
  X(Activation) X(Attention) X(BatchNorm) X(Binary) X(ClipCast) X(Conv) X(Gather) X(Generate) \
  X(Join) X(LayerNorm) X(Logic) X(MatMul) X(Move) X(Nary) X(Pad) X(Pool) X(Random) X(Reduce)  \
  X(Resize) X(Scan) X(Softmax) X(UnaryMath)
// clang-format on

#define CKPLAN_FAMILY(Name) std::span<const OpRow> Name##Ops();
CKPLAN_CUDA_FAMILIES(CKPLAN_FAMILY)
#undef CKPLAN_FAMILY

// Operators that follow each other, run as one kernel (fused.cu): chains, and scores of attention
// with their softmax. shape_rules.h says which. `ops` is accepted by FusibleLength.
std::unique_ptr<FusedForward> MakeFused(std::span<const ChainedOp> ops, Device& device);

// The two kinds of fused operators.
std::unique_ptr<FusedForward> MakeFusedChain(std::span<const ChainedOp> ops, Device& device);
std::unique_ptr<FusedForward> MakeFusedScores(std::span<const ChainedOp> ops, Device& device);

}  // namespace ckplan::cuda
