// Compares an operator with itself: apart from the rounding of stored values, its results for
// bfloat16 tensors must equal those for the same numbers in float32.
//
// CheckOp tests the float32 run, so together they test the kernels for both types.
#pragma once

#include <string>
#include <vector>

#include "lib/executor/backend/backend.h"
#include "lib/executor/testing/op_case.h"

namespace ckplan::reference {

// Runs the case twice, with float inputs that bfloat16 represents exactly: stored as float32, and
// stored as bfloat16. In the second run, all float outputs and their gradients are also bfloat16.
// Constants, parameters and their gradients are float32 in both runs. Outputs, statistics and
// gradients must agree. Repeating the second run, also in place of an input, must give the same
// bits. Returns the faults, each with the case and the seed; empty if no operand depends on the
// batch. Rejecting bfloat16 is a fault.
std::vector<std::string> CheckBFloat16(Backend& backend, const CaseRow& row, uint64_t seed);

// The same check, with the second run's four-axis tensors in an order that the backend supports
// (Backend::OrdersOf): all of them channels-last or, for operators with a separate order for each
// tensor, also only the first input or output. Empty if the backend supports no such order.
std::vector<std::string> CheckChannelsLast(Backend& backend, const CaseRow& row, uint64_t seed);

}  // namespace ckplan::reference
