// Computes instructions that only read and write registers.
#pragma once

#include "lib/executor/cuda/ptx/lanes.h"
#include "lib/executor/cuda/ptx/program.h"

namespace ckplan::ptx {

// Computes the instruction for these lanes. `carries` has the carry flag of each lane.
//
// Floats are computed as IEEE 754 says, with the rounding of the instruction and with the one NaN
// that a GPU has. Approximations (ex2, rsqrt, div.approx and the like) are as exact as the host's
// functions.
void Compute(const Instruction& instruction, LaneRegisters registers, LaneMask lanes,
             LaneMask& carries);

}  // namespace ckplan::ptx
