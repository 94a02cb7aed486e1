// Operators as text, for the fuzzer of kernels: three lines in the grammar of a CaseRow
// (lib/executor/reference/op_case.h) with the operator, its operands and its attributes.
//
//   Conv
//   f1x2x5x5 f3x2x3x3* -> f1x3x3x3
//   kernel_shape=[3,3]
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "lib/executor/reference/op_case.h"

namespace ckplan {

// Returns nothing if the text does not follow the grammar, if an operand is larger than any graph
// may be, or if no case of lib/executor/reference gives the operator these operands of these types.
// Models with other operands are refused when they are loaded.
std::optional<reference::OpCase> ReadKernelCase(std::string_view text);

// Returns another case, made from this one: a number changed in one place or everywhere, a word
// doubled, dropped or taken from another case, a letter exchanged, or a different case altogether.
std::string MutateKernelCase(std::string_view text, unsigned int seed);

}  // namespace ckplan
