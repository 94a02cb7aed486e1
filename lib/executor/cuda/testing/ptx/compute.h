// Computes instructions that only read and write registers.
#pragma once

#include "lib/executor/cuda/testing/ptx/lanes.h"
#include "lib/executor/cuda/testing/ptx/program.h"

namespace ckplan::ptx {

// Computes the instruction for these lanes. `carries` has each lane's carry flag.
//
// Floats follow IEEE 754, with the instruction's rounding and the GPU's single NaN. Approximations
// (ex2, rsqrt, div.approx and the like) are as exact as the host's functions.
// functions.
void Compute(const Instruction& instruction, LaneRegisters registers, LaneMask lanes,
             LaneMask& carries);

}  // namespace ckplan::ptx
