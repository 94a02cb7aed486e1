#include "lib/problem/ops/layout.h"

#include <doctest/doctest.h>

#include <utility>

namespace ckplan {
namespace {

Operand Tensor(Dims dims, bool is_channels_last = false) {
  Operand operand{true, ElementType::kBFloat16, std::move(dims)};
  operand.is_channels_last = is_channels_last;
  return operand;
}

TEST_CASE("element order: one channel or one position have one order, leading axes may lack") {
  CHECK(HasOneOrder({2, 1, 3, 4}));
  CHECK(HasOneOrder({2, 5, 1, 1}));
  CHECK(HasOneOrder({5, 1, 1}));
  CHECK(HasOneOrder({4}));
  CHECK(HasOneOrder({}));
  CHECK_FALSE(HasOneOrder({2, 5, 3, 4}));
  CHECK_FALSE(HasOneOrder({5, 1, 4}));
  CHECK_FALSE(HasOneOrder({2, 1, 1, 1, 1}));
}

TEST_CASE("element order: the axes of an elementwise operator become those in memory") {
  OpSpec add;
  add.type = "Add";
  add.inputs = {Tensor({2, 5, 3, 4}, true), Tensor({5, 1, 1})};
  add.outputs = {Tensor({2, 5, 3, 4}, true)};
  REQUIRE(HasStoredOrder(add));
  CHECK(StoredDims(add.input(0)) == Dims{2, 3, 4, 5});
  const OpSpec stored = InStoredOrder(add);
  CHECK(stored.input(0).dims == Dims{2, 3, 4, 5});
  CHECK(stored.input(1).dims == Dims{1, 1, 1, 5});
  CHECK(stored.output(0).dims == Dims{2, 3, 4, 5});
  CHECK_FALSE(stored.input(0).is_channels_last);
  CHECK_FALSE(stored.output(0).is_channels_last);
}

TEST_CASE("element order: Concat goes along the axis where it lies in memory, scalars stay") {
  struct Row {
    int64_t axis, stored;
  };
  for (const Row& row : {Row{0, 0}, Row{1, 3}, Row{2, 1}, Row{3, 2}, Row{-3, 3}, Row{-1, 2}}) {
    CAPTURE(row.axis);
    OpSpec concat;
    concat.type = "Concat";
    concat.attributes["axis"] = row.axis;
    concat.inputs = {Tensor({2, 5, 3, 4}, true)};
    concat.outputs = {Tensor({2, 5, 3, 4}, true)};
    CHECK(InStoredOrder(concat).Int("axis", -9) == row.stored);
  }
  OpSpec clip;
  clip.type = "Clip";
  clip.inputs = {Tensor({2, 5, 3, 4}, true), Tensor({}), Operand()};
  clip.outputs = {Tensor({2, 5, 3, 4}, true)};
  CHECK(InStoredOrder(clip).input(1).dims.empty());
}

TEST_CASE("element order: Slice cuts the axes where they lie in memory, and keeps its lists") {
  OpSpec slice;
  slice.type = "Slice";
  Operand list{true, ElementType::kInt64, {2}};
  slice.inputs = {Tensor({2, 5, 6, 7}, true), list, list, list};
  slice.outputs = {Tensor({2, 5, 3, 4}, true)};
  CHECK_FALSE(HasStoredOrder(slice));  // Its axes are unknown.
  slice.inputs[3].known = KnownValue{{2, -1}, {}};
  REQUIRE(HasStoredOrder(slice));
  const OpSpec stored = InStoredOrder(slice);
  CHECK(stored.input(0).dims == Dims{2, 6, 7, 5});
  CHECK(stored.input(1).dims == Dims{2});
  CHECK(stored.input(3).known->ints == std::vector<int64_t>{1, 2});
  CHECK(stored.output(0).dims == Dims{2, 3, 4, 5});
}

TEST_CASE("element order: an operator without marks stays as it is") {
  OpSpec concat;
  concat.type = "Concat";
  concat.attributes["axis"] = int64_t{1};
  concat.inputs = {Tensor({2, 5, 3, 4})};
  concat.outputs = {Tensor({2, 5, 3, 4})};
  const OpSpec same = InStoredOrder(concat);
  CHECK(same.Int("axis", -9) == 1);
  CHECK(same.input(0).dims == Dims{2, 5, 3, 4});
  OpSpec softmax;
  softmax.type = "Softmax";
  CHECK_FALSE(HasStoredOrder(softmax));
}

}  // namespace
}  // namespace ckplan
