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

// The operators of the CUDA backend by family, one or two files each in ops/. registry.cc joins
// them.

#define CKPLAN_FAMILY(Name) std::span<const OpRow> Name##Ops();
#include "lib/problem/ops/families.def"
#undef CKPLAN_FAMILY

// FusedAttention (lib/problem/ops/attention.h), of the family of attention.
Result<std::unique_ptr<PreparedOp>> PrepareFusedAttention(const OpSpec& spec, Device& device);

// Operators that follow each other, run as one kernel (fused.cu): chains, and scores of attention
// with their softmax. traffic/shape_rules.h says which. `ops` is accepted by FusibleLength.
std::unique_ptr<FusedForward> MakeFused(std::span<const ChainedOp> ops, Device& device);

// The two kinds of fused operators.
std::unique_ptr<FusedForward> MakeFusedChain(std::span<const ChainedOp> ops, Device& device);
std::unique_ptr<FusedForward> MakeFusedScores(std::span<const ChainedOp> ops, Device& device);

}  // namespace ckplan::cuda
