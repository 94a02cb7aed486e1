#include "lib/executor/reference/families.h"

namespace ckplan::reference {

namespace {

struct Family {
  std::span<const FunctionRow> (*references)();
  std::span<const CaseRow> (*cases)();
};

constexpr Family kFamilies[] = {
#define CKPLAN_FAMILY(Name) {Name##References, Name##Cases},
#include "lib/problem/ops/families.def"
#undef CKPLAN_FAMILY
};

}  // namespace

Function FindFunction(std::string_view type) {
  for (const Family& family : kFamilies) {
    for (const FunctionRow& row : family.references()) {
      if (row.type == type) return row.function;
    }
  }
  return nullptr;
}

int CountCases(std::string_view type) {
  int count = 0;
  for (const Family& family : kFamilies) {
    for (const CaseRow& row : family.cases()) {
      if (row.type.substr(0, row.type.find('@')) == type) ++count;
    }
  }
  return count;
}

}  // namespace ckplan::reference
