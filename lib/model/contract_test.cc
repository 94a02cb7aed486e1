// The kernels' tests see what backward may read through a table of their own, lib/reference, which
// knows no ONNX. It must say what op_class.def says.
#include "lib/reference/contract.h"

#include <doctest/doctest.h>

#include <string_view>

#include "lib/model/op_rules.h"

namespace ckplan {
namespace {

struct Row {
  std::string_view type;
  OpKind kind;
  std::string_view letters;
};

constexpr Row kRows[] = {
#define CKPLAN_OP(type, kind, minimal, torch, statistic, work, amount) \
  {#type, OpKind::kind, #minimal},
#include "lib/model/op_class.def"
#undef CKPLAN_OP
};

TEST_CASE("contract: the tests of kernels and the planner agree on what backward reads") {
  int compared = 0;
  for (const Row& row : kRows) {
    CAPTURE(row.type);
    OpRule rule;
    rule.kind = row.kind;
    CHECK((!reference::IsElementwise(row.type) || rule.is_elementwise()));
    const reference::ContractRow* contract = reference::FindContract(row.type);
    if (contract == nullptr) continue;
    ++compared;
    CHECK(rule.has_gradient());
    CHECK(contract->letters == row.letters);
    CHECK(contract->is_elementwise == rule.is_elementwise());
  }
  CHECK(compared == reference::CountContracts());
}

}  // namespace
}  // namespace ckplan
