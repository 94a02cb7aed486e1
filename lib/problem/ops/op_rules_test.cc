#include "lib/problem/ops/op_rules.h"

#include <doctest/doctest.h>

#include <string>

#include "lib/executor/reference/op_case.h"

namespace ckplan {
namespace {

bool IsViewOf(const reference::CaseRow& row) {
  const OpSpec spec = reference::SpecOfCase(row);
  return IsView(RuleOf(spec.type), spec);
}

TEST_CASE("views: operators that keep every element in its place") {
  const reference::CaseRow views[] = {
      {"Reshape", "f2x3 i1=[6] -> f6"},
      {"Cast", "f2 -> f2"},
      {"Dropout", "f2 f1=[0.0] -> f2"},
      {"Dropout@10", "f2 -> f2", "ratio=0.0"},
      {"Transpose", "f2x1x3 -> f1x2x3", "perm=[1,0,2]"},
      {"Slice", "f4 i1=[0] i1=[9] -> f4"},
      {"Slice", "f4 i1=[0] i1=[9] i1=[0] i1=[1] -> f4"},
      {"Pad", "f4 i2=[0,0] -> f4"},
      {"Concat", "f2x3 -> f2x3", "axis=0"},
      {"Expand", "f2x3 i2=[2,3] -> f2x3"},
      {"Sum", "f2 -> f2"},
      {"Max", "f2 -> f2"},
  };
  for (const reference::CaseRow& row : views) {
    CAPTURE(std::string(row.type));
    CAPTURE(std::string(row.operands));
    CHECK(IsViewOf(row));
  }
}

TEST_CASE("views: operators that move, reverse, cut, repeat or convert are none") {
  const reference::CaseRow others[] = {
      {"Relu", "f2 -> f2"},
      {"Cast", "f2 -> i2"},
      {"Dropout", "f2 f1=[0.5] -> f2"},
      {"Dropout", "f2 f1~ -> f2"},
      {"Transpose", "f2x3 -> f3x2"},
      {"Slice", "f4 i1=[3] i1=[-9] i1=[0] i1=[-1] -> f4"},
      {"Slice", "f4 i1 i1 i1 i1 -> f4"},
      {"Slice", "f4 i1=[0] i1=[2] -> f2"},
      {"Pad", "f4 i2=[1,-1] -> f4"},
      {"Pad", "f4 i2 -> f4"},
      {"Concat", "f2x3 f0x3 -> f2x3", "axis=0"},
      {"Split", "f2x3 -> f2x3 f0x3"},
      {"Sum", "f2 f2 -> f2"},
      {"Identity", "_ -> f2"},
  };
  for (const reference::CaseRow& row : others) {
    CAPTURE(std::string(row.type));
    CAPTURE(std::string(row.operands));
    CHECK_FALSE(IsViewOf(row));
  }
}

TEST_CASE("views: a cast between two float types stored in the same type is none") {
  OpSpec spec = reference::SpecOfCase({"Cast", "f2 -> f2"});
  spec.inputs[0].planned = {TensorType::kFloat16, 4};
  CHECK_FALSE(IsView(RuleOf("Cast"), spec));
}

TEST_CASE("gradients: they flow to floats except ratios, sizes and running statistics") {
  struct Row {
    reference::CaseRow op;
    const char* flows;  // By input.
  };
  const Row rows[] = {
      {{"Add", "f2 f2 -> f2"}, "11"},
      {{"Gather", "f3 i2 -> f2"}, "10"},
      {{"Clip", "f2 fs fs -> f2"}, "100"},
      {{"Resize", "f1x1x2 _ f3 -> f1x1x4"}, "100"},
      {{"Pad", "f2 i2 f1 -> f4"}, "100"},
      {{"BatchNormalization", "f2x3 f3 f3 f3 f3 -> f2x3"}, "11100"},
      {{"RotaryEmbedding", "f1x1x2x4 f2x2 f2x2 -> f1x1x2x4"}, "100"},
      {{"SoftmaxCrossEntropyLoss", "f2x3 i2 f3 -> fs"}, "100"},
      {{"Dropout", "f2 f1 -> f2"}, "10"},
      {{"CastLike", "f2 f2 -> f2"}, "10"},
      {{"Floor", "f2 -> f2"}, "0"},
      {{"Shape", "f2 -> i1"}, "0"},
  };
  for (const Row& row : rows) {
    const reference::OpCase parsed = reference::ParseCase(row.op);
    CAPTURE(parsed.text);
    for (size_t i = 0; i < parsed.spec.inputs.size(); ++i) {
      CHECK(IsDifferentiable(parsed.spec, i) == (row.flows[i] == '1'));
    }
  }
}

TEST_CASE("contents: inputs of which more than the shape or type is read") {
  CHECK_FALSE(ReadsContents(RuleOf("Shape"), 0));
  CHECK_FALSE(ReadsContents(RuleOf("RandomNormalLike"), 0));
  CHECK(ReadsContents(RuleOf("Reshape"), 0));
  CHECK_FALSE(ReadsContents(RuleOf("Reshape"), 1));
  CHECK_FALSE(ReadsContents(RuleOf("CastLike"), 1));
  CHECK(ReadsContents(RuleOf("BatchNormalization"), 2));
  CHECK_FALSE(ReadsContents(RuleOf("BatchNormalization"), 3));
  CHECK(ReadsContents(RuleOf("Unheard"), 9));
}

}  // namespace
}  // namespace ckplan
