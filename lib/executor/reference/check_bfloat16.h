// Compares an operator with itself: apart from the rounding of stored values, its results for
// tensors stored as bfloat16 must equal its results for the same numbers stored as float32.
//
// The float32 run is tested by CheckOp, so together the two test the kernels for both types.
#pragma once

#include <string>
#include <vector>

#include "lib/executor/backend/backend.h"
#include "lib/executor/reference/op_case.h"

namespace ckplan::reference {

// Runs the case twice, with float inputs of the batch that bfloat16 holds exactly: stored as
// float32, and stored as bfloat16. In the second run all float outputs and the gradients of both
// are bfloat16 as well. Constants, parameters and their gradients are float32 in both runs.
// Outputs, statistics and gradients must agree. The second run must also give the same bits twice,
// and in place of an input. Returns the faults, each with the case and the seed. The list is empty
// if there are none, or if no operand of the case depends on the batch. An operator that refuses
// bfloat16 is a fault.
std::vector<std::string> CheckBFloat16(Backend& backend, const CaseRow& row, uint64_t seed);

// Checks the same with the tensors of four axes of the second run in an order that the backend says
// it takes (Backend::OrdersOf): all of them with their channels last or, for operators that take
// each in an order of its own, also the first input or the first output alone. The list is empty if
// the backend takes none so.
std::vector<std::string> CheckChannelsLast(Backend& backend, const CaseRow& row, uint64_t seed);

}  // namespace ckplan::reference
