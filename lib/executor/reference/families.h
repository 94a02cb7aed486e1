// The references of all operators, and the cases with which kernels are checked. Each family has
// one file in this folder.
#pragma once

#include <span>
#include <string_view>

#include "lib/executor/reference/op_case.h"
#include "lib/executor/reference/tensor.h"

namespace ckplan::reference {

#define CKPLAN_FAMILY(Name)                        \
  std::span<const FunctionRow> Name##References(); \
  std::span<const CaseRow> Name##Cases();
#include "lib/problem/ops/families.def"
#undef CKPLAN_FAMILY

// Returns null for an operator without a reference.
Function FindFunction(std::string_view type);
// Returns the number of this operator's cases, in all families.
int CountCases(std::string_view type);

}  // namespace ckplan::reference
