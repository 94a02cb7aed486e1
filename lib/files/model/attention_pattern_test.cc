#include "lib/files/model/attention_pattern.h"

#include <doctest/doctest.h>

namespace ckplan {
namespace {

TEST_CASE("head axes: a transpose of heads is an order of the axes before it") {
  const HeadAxes operand({2, 3, 5, 4}, "bhsd");  // Batch, heads, rows, elements.
  CHECK(operand.Order() == "bhsd");
  const HeadAxes split = operand.BeforeTransposeBy({0, 2, 1, 3});
  CHECK(split.Order() == "bshd");
  const auto joined = split.Reshaped({2, 5, 12});
  REQUIRE(joined.has_value());
  CHECK(joined->Order() == "bshd");
  CHECK(split.TransposedBy({0, 2, 1, 3}).Order() == "bhsd");
}

TEST_CASE("head axes: keys that are transposed for the product, through a matrix for each head") {
  // [2,5,12] is split into heads, moved to [6,5,4], transposed to [6,4,5], and split to [2,3,4,5].
  const HeadAxes operand({2, 3, 4, 5}, "bhds");
  CHECK_FALSE(operand.Order().has_value());
  const auto matrices = operand.Reshaped({6, 4, 5});
  REQUIRE(matrices.has_value());
  const auto heads = matrices->BeforeTransposeBy({0, 2, 1}).Reshaped({2, 3, 5, 4});
  REQUIRE(heads.has_value());
  CHECK(heads->BeforeTransposeBy({0, 2, 1, 3}).Reshaped({2, 5, 12})->Order() == "bshd");
}

TEST_CASE("head axes: sequences first, with batch and heads in one axis") {
  const HeadAxes operand({2, 3, 5, 4}, "bhsd");
  const auto before =
      operand.Reshaped({6, 5, 4})->BeforeTransposeBy({1, 0, 2}).Reshaped({5, 2, 12});
  REQUIRE(before.has_value());
  CHECK(before->Order() == "sbhd");
}

TEST_CASE("head axes: several axes of the batch are one") {
  CHECK(HeadAxes({2, 7, 3, 5, 4}, "bbhsd").Order() == "bhsd");
  // The windows of an image are no neighbours before they are cut out.
  const HeadAxes windows({2, 7, 3, 5, 4}, "bbhsd");
  CHECK_FALSE(windows.BeforeTransposeBy({0, 2, 1, 3, 4}).Order().has_value());
}

TEST_CASE("head axes: dimensions that cut an axis, and those that do not divide one") {
  const HeadAxes operand({2, 3, 5, 4}, "bhsd");
  CHECK(operand.Reshaped({2, 3, 5, 2, 2})->Order() == "bhsd");
  CHECK_FALSE(operand.Reshaped({3, 2, 5, 4}).has_value());
  CHECK_FALSE(operand.Reshaped({2, 3, 5, 3}).has_value());
  CHECK_FALSE(operand.Reshaped({2, 3, 5}).has_value());
}

TEST_CASE("head axes: axes of one element are everywhere") {
  CHECK(HeadAxes({2, 1, 5, 4}, "bhsd").BeforeTransposeBy({0, 2, 1, 3}).Order() == "hbsd");
  CHECK(HeadAxes({1, 1, 1, 1}, "bhsd").Order() == "bhsd");
}

TEST_CASE("head axes: heads that an Expand repeats share their keys") {
  // [2,3,5,4] with 3 heads of keys, each repeated for 2 heads of queries.
  const HeadAxes operand({2, 6, 5, 4}, "bhsd");
  const auto repeated = operand.Reshaped({2, 3, 2, 5, 4});
  REQUIRE(repeated.has_value());
  const auto before = repeated->BeforeExpand({2, 3, 1, 5, 4});
  REQUIRE(before.has_value());
  CHECK(before->repeats() == 2);
  CHECK(before->Reshaped({2, 3, 5, 4})->Order() == "bhsd");
  // The outer part of the heads, or rows, cannot be shared.
  CHECK_FALSE(operand.Reshaped({2, 2, 3, 5, 4})->BeforeExpand({2, 1, 3, 5, 4}).has_value());
  CHECK_FALSE(operand.BeforeExpand({2, 6, 1, 4}).has_value());
}

}  // namespace
}  // namespace ckplan
