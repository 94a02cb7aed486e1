// Tests the operators of the CUDA backend against the double-precision reference, with the cases of
// the CPU backend; see lib/executor/reference/op_case.h.
#include <doctest/doctest.h>

#include "lib/executor/cuda/registry.h"
#include "lib/executor/cuda/test_backend.h"
#include "lib/executor/reference/check_bfloat16.h"
#include "lib/executor/reference/check_op.h"
#include "lib/executor/reference/families.h"
#include "lib/problem/ops/families.h"

namespace ckplan::cuda {
namespace {

constexpr uint64_t kSeed = 20240607;

using Check = std::vector<std::string> (*)(Backend&, const reference::CaseRow&, uint64_t);

void CheckCases(std::span<const reference::CaseRow> rows, Check check = reference::CheckOp) {
  const auto backend = MakeTestBackend();
  for (const reference::CaseRow& row : rows) {
    const std::vector<std::string> faults = check(*backend, row, kSeed);
    std::string message;
    for (const std::string& fault : faults) message += fault + "\n";
    CHECK_MESSAGE(faults.empty(), message);
  }
}

// Runs each case in float32, with activations and their gradients as bfloat16, and with the
// channels last, where the operator takes them so.
#define CKPLAN_FAMILY(Name)                                             \
  TEST_CASE("cuda: " #Name) { CheckCases(reference::Name##Cases()); }   \
  TEST_CASE("cuda: " #Name ", stored as bfloat16") {                    \
    CheckCases(reference::Name##Cases(), reference::CheckBFloat16);     \
    CheckCases(reference::Name##Cases(), reference::CheckChannelsLast); \
  }
#include "lib/problem/ops/families.def"
#undef CKPLAN_FAMILY

TEST_CASE("cuda: the backend has each operator of the families once") {
  const auto rows = Table().rows();
  const auto families = AllFamilyRows();
  REQUIRE(rows.size() == families.size());
  for (size_t i = 0; i < rows.size(); ++i) CHECK(rows[i].type == families[i].type);
}

}  // namespace
}  // namespace ckplan::cuda
