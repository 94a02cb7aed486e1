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

// The products of matrices by tensor cores (mma), of which each thread of a warp holds a part.

// Returns what the words of an mma say, without its registers; nothing if the interpreter does not
// know the form. It knows m16n8k16 of bfloat16 and m16n8k8 of TF32, both with sums of float32.
std::optional<MatrixProduct> ProductOf(const std::vector<std::string_view>& words);

// Computes D = A B + C for the whole warp. The sum of each element is rounded once; a GPU rounds it
// in an order that is its own.
void ComputeProduct(const MatrixProduct& product, LaneRegisters registers);

}  // namespace ckplan::ptx
