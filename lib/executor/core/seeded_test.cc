#include "lib/executor/core/seeded.h"

#include <doctest/doctest.h>

#include <cstring>

#include "lib/problem/ops/bfloat16.h"

namespace ckplan {

TEST_CASE("seeded: a bfloat16 input holds the rounded numbers of the float32 input") {
  StepInput input;
  input.name = "x";
  input.operand.is_present = true;
  input.operand.dims = {7};
  std::vector<float> wide(7);
  std::memcpy(wide.data(), SeededInput(3, input).data(), wide.size() * sizeof(float));
  input.operand.type = ElementType::kBFloat16;
  std::vector<uint16_t> narrow(7);
  const std::vector<std::byte> bytes = SeededInput(3, input);
  REQUIRE(bytes.size() == narrow.size() * sizeof(uint16_t));
  std::memcpy(narrow.data(), bytes.data(), bytes.size());
  CHECK(narrow == ToBFloat16(wide));
}

}  // namespace ckplan
