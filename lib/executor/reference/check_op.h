// Compares an operator of a backend with its reference.
//
//   Forward   equals the reference; the same bits twice, at other addresses, in place of an input
//             (elementwise operators) and with an output left out; writes all of its outputs and
//             statistic, nothing else, and no input.
//   Backward  equals central differences of the reference, for all inputs at once and for each
//             alone, for all arriving gradients and for each alone; sees only what the table of
//             lib/problem/ops lets it read; the same bits twice.
#pragma once

#include <string>
#include <vector>

#include "lib/executor/backend/backend.h"
#include "lib/executor/reference/op_case.h"

namespace ckplan::reference {

// Random contents are generated from the seed. Returns the faults, each with the case and the seed;
// empty if there are none.
std::vector<std::string> CheckOp(Backend& backend, const CaseRow& row, uint64_t seed);

}  // namespace ckplan::reference
