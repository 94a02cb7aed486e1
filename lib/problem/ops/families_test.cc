#include "lib/problem/ops/families.h"

#include <doctest/doctest.h>

namespace ckplan {
namespace {

TEST_CASE("families: rows are in order, and no operator has two") {
  const auto rows = AllFamilyRows();
  for (size_t i = 1; i < rows.size(); ++i) CHECK(rows[i - 1].type < rows[i].type);
  CHECK(FindFamilyRow("Relu") != nullptr);
  CHECK(FindFamilyRow("Relu6") == nullptr);
}

TEST_CASE("families: limits of all backends and of one are joined") {
  CHECK(JoinLimits("", "") == "");
  CHECK(JoinLimits("a", "") == "a");
  CHECK(JoinLimits("", "b") == "b");
  CHECK(JoinLimits("a", "b") == "a; b");
}

}  // namespace
}  // namespace ckplan
