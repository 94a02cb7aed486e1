// The references of all operators, and the cases to check kernels with, by family: of each family
// one file in this folder, FAMILY.cc.
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

// Null for an operator without a reference.
Function FindFunction(std::string_view type);
// How many cases of all families are of this operator.
int CountCases(std::string_view type);

}  // namespace ckplan::reference
