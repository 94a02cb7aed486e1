// Chains of fused operators, and scores of attention with their softmax.
#pragma once

#include <memory>
#include <span>

#include "lib/executor/cuda/device.h"
#include "lib/executor/cuda/traffic/fusion_rules.h"

namespace ckplan::cuda {

// Operators that follow each other, run as one kernel; traffic/fusion_rules.h says which.

// `ops` is accepted by FusibleLength.
std::unique_ptr<FusedForward> MakeFused(std::span<const ChainedOp> ops, Device& device);

// The two kinds of fused operators.
std::unique_ptr<FusedForward> MakeFusedChain(std::span<const ChainedOp> ops, Device& device);
std::unique_ptr<FusedForward> MakeFusedScores(std::span<const ChainedOp> ops, Device& device);

}  // namespace ckplan::cuda
