// Operators as text, for the kernel fuzzer: three lines in the grammar of a CaseRow
// (lib/executor/testing/op_case.h) with the operator, its operands and its attributes.
//
//   Conv
//   f1x2x5x5 f3x2x3x3* -> f1x3x3x3
//   kernel_shape=[3,3]
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "lib/executor/testing/op_case.h"

namespace ckplan {

// Returns nothing if the text doesn't follow the grammar, if an operand exceeds the limit for
// graphs, or if no case in lib/executor/testing has this operator with the same operand types.
// The loader rejects models with other operands.
std::optional<reference::OpCase> ReadKernelCase(std::string_view text);

// Returns a variation of the case: a number changed in one place or everywhere, a word doubled,
// dropped or taken from another case, a letter exchanged, or a different case altogether.
std::string MutateKernelCase(std::string_view text, unsigned int seed);

}  // namespace ckplan
