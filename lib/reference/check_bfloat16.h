// Compares an operator with itself: its results for tensors stored as bfloat16 must equal, except
// for the rounding of stored values, its results for the same numbers stored as float32.
//
// The float32 run is tested by CheckOp, so together the two test the kernels for both types.
#pragma once

#include <string>
#include <vector>

#include "lib/backend/backend.h"
#include "lib/reference/op_case.h"

namespace ckplan::reference {

// Runs the case twice with float inputs of the batch that bfloat16 holds exactly: stored as
// float32, and stored as bfloat16, as are then all float outputs and the gradients of both.
// Constants, parameters and their gradients are float32 in both runs. Outputs, statistics and
// gradients must agree; the second run must also give the same bits twice, and in place of an
// input. Returns what is wrong, each with the case and the seed; empty if all is right, or if
// nothing of the case depends on the batch. An operator that refuses bfloat16 is wrong.
std::vector<std::string> CheckBFloat16(Backend& backend, const CaseRow& row, uint64_t seed);

}  // namespace ckplan::reference
