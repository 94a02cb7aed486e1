// Computes instructions that only read and write registers.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "lib/executor/cuda/ptx/lanes.h"
#include "lib/executor/cuda/ptx/program.h"

namespace ckplan::ptx {

// Computes the instruction for these lanes. `carries` has each lane's carry flag.
//
// Floats follow IEEE 754, with the instruction's rounding and the GPU's single NaN. Approximations
// (ex2, rsqrt, div.approx and the like) are as exact as the host's functions.
// functions.
void Compute(const Instruction& instruction, LaneRegisters registers, LaneMask lanes,
             LaneMask& carries);

// Matrix products on tensor cores (mma). Each thread of a warp holds a part of the matrices.

// Parses the words of an mma, without its registers. Returns nothing for forms that the interpreter
// doesn't support. It supports m16n8k16 for bfloat16 and m16n8k8 for TF32, both with float32 sums.
std::optional<MatrixProduct> ProductOf(const std::vector<std::string_view>& words);

// Computes D = A B + C for the whole warp. Each element's sum is rounded once; a GPU rounds in its
// own order.
void ComputeProduct(const MatrixProduct& product, LaneRegisters registers);

}  // namespace ckplan::ptx
