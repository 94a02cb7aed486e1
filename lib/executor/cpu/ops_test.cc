// Tests the operators of the CPU backend against the double-precision reference. Each case is a row
// of a table; see lib/executor/reference/op_case.h.
#include <doctest/doctest.h>

#include "lib/executor/cpu/cpu_backend.h"
#include "lib/executor/cpu/registry.h"
#include "lib/executor/reference/check_op.h"
#include "lib/executor/reference/families.h"
#include "lib/problem/ops/families.h"
#include "lib/problem/ops/op_table.h"

namespace ckplan::cpu {
namespace {

constexpr uint64_t kSeed = 20240607;

void CheckCases(std::span<const reference::CaseRow> rows) {
  const auto backend = MakeCpuBackend(2);
  for (const reference::CaseRow& row : rows) {
    const std::vector<std::string> faults = reference::CheckOp(*backend, row, kSeed);
    std::string message;
    for (const std::string& fault : faults) message += fault + "\n";
    CHECK_MESSAGE(faults.empty(), message);
  }
}

#define CKPLAN_FAMILY(Name) \
  TEST_CASE("cpu: " #Name) { CheckCases(reference::Name##Cases()); }
#include "lib/problem/ops/families.def"
#undef CKPLAN_FAMILY

// Random operators have no reference; random_test.cc tests them.
bool IsRandom(std::string_view type) {
  return type.substr(0, 6) == "Random" || type == "Bernoulli" || type == "Dropout";
}

TEST_CASE("cpu: the backend has each operator of the families once") {
  const auto rows = Table().rows();
  const auto families = AllFamilyRows();
  REQUIRE(rows.size() == families.size());
  for (size_t i = 0; i < rows.size(); ++i) CHECK(rows[i].type == families[i].type);
}

TEST_CASE("cpu: every operator has cases, and a row in the table of operators") {
  for (const OpSupport& op : MakeCpuBackend(2)->Operators()) {
    CAPTURE(op.type);
    CHECK((IsRandom(op.type) || reference::CountCases(op.type) > 0));
    CHECK(RuleOf(op.type).is_known());
  }
}

}  // namespace
}  // namespace ckplan::cpu
