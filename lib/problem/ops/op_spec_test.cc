#include "lib/problem/ops/op_spec.h"

#include <doctest/doctest.h>

namespace ckplan {
namespace {

TEST_CASE("tensor types: ONNX's numbers are known, and other numbers stand for no type") {
  CHECK(TensorTypeOf(1) == TensorType::kFloat32);
  CHECK(TensorTypeOf(16) == TensorType::kBFloat16);
  CHECK(TensorTypeOf(26) == TensorType::kInt2);
  for (const int32_t number : {-1, 0, 27, 1 << 20}) {
    CHECK(TensorTypeOf(number) == TensorType::kUndefined);
  }
}

TEST_CASE("tensor types: bits of an element, and which types are floats") {
  struct Row {
    TensorType type;
    int64_t bits;
    bool is_float;
  };
  for (const Row& row : {Row{TensorType::kFloat64, 64, true}, Row{TensorType::kBFloat16, 16, true},
                         Row{TensorType::kFloat8E5M2, 8, true}, Row{TensorType::kInt4, 4, false},
                         Row{TensorType::kFloat4E2M1, 4, true}, Row{TensorType::kUint2, 2, false},
                         Row{TensorType::kComplex128, 128, true}, Row{TensorType::kBool, 8, false},
                         Row{TensorType::kString, 0, false}}) {
    CAPTURE(static_cast<int>(row.type));
    CHECK(BitsOf(row.type) == row.bits);
    CHECK(IsFloat(row.type) == row.is_float);
  }
}

TEST_CASE("tensor types: the planner's type replaces the stored type") {
  Operand operand{.is_present = true, .type = ElementType::kInt32, .dims = {3, 5}};
  CHECK(operand.model_type() == TensorType::kInt32);
  CHECK(operand.bytes() == 60);
  operand.planned = {TensorType::kUint4, 8};
  CHECK(operand.model_type() == TensorType::kUint4);
  CHECK(operand.bytes() == 8);
}

}  // namespace
}  // namespace ckplan
