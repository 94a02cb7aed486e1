// The references of all operators, and the cases that kernels are checked with. Each family has one
// file in this folder.
#pragma once

#include <span>
#include <string_view>

#include "lib/reference/op_case.h"
#include "lib/reference/reference.h"

namespace ckplan::reference {

#define CKPLAN_FAMILY(Name)                        \
  std::span<const FunctionRow> Name##References(); \
  std::span<const CaseRow> Name##Cases();
#include "lib/ops/families.def"
#undef CKPLAN_FAMILY

// Returns null for an operator without a reference.
Function FindFunction(std::string_view type);
// The number of cases, in all families, of this operator.
int CountCases(std::string_view type);

}  // namespace ckplan::reference
