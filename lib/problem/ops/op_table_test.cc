#include "lib/problem/ops/op_table.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "lib/executor/testing/op_case.h"
#include "lib/problem/ops/families.h"

namespace ckplan {
namespace {

TEST_CASE("table of operators: every row is found by its name, and no name has two") {
  const auto rules = AllOpRules();
  CHECK(rules.size() > 150);
  for (const OpRule& rule : rules) {
    CAPTURE(std::string(rule.type));
    CHECK(&RuleOf(rule.type) == &rule);
    CHECK(&RuleOfSpelling(rule.type) == &rule);
    CHECK(rule.is_known());
  }
  const auto twice =
      std::adjacent_find(rules.begin(), rules.end(),
                         [](const OpRule& a, const OpRule& b) { return a.type >= b.type; });
  CHECK(twice == rules.end());
}

TEST_CASE("table of operators: backward of an unknown operator reads everything") {
  for (const char* type : {"", "relu", "com.microsoft.Gelu", "Zzz"}) {
    CAPTURE(std::string(type));
    CHECK_FALSE(RuleOf(type).is_known());
    CHECK_FALSE(HasGradient(type));
    CHECK(RuleOf(type).reads(Autograd::kMinimal) == (reads::V | reads::Z | reads::I));
  }
}

TEST_CASE("table of operators: only operators with a gradient have backward reads") {
  for (const OpRule& rule : AllOpRules()) {
    CAPTURE(std::string(rule.type));
    if (!rule.has_gradient()) CHECK((rule.minimal_reads | rule.torch_reads) == 0);
    const bool reads_statistic = ((rule.minimal_reads | rule.torch_reads) & reads::S) != 0;
    CHECK(reads_statistic == (rule.statistic != Statistic::kNone));
  }
}

TEST_CASE("table of operators: it knows the spellings of other frameworks") {
  CHECK(RuleOfSpelling("relu").type == "Relu");
  CHECK(RuleOfSpelling("Silu").type == "Swish");
  CHECK(RuleOfSpelling("conv").has(traits::kProduct));
  CHECK_FALSE(RuleOfSpelling("Convolution2DFunction").is_known());
}

TEST_CASE("table of operators: some are cheap, some costly, and none is both") {
  for (const OpRule& rule : AllOpRules()) {
    CAPTURE(std::string(rule.type));
    CHECK_FALSE((rule.is_cheap() && rule.is_costly()));
  }
  for (const char* type : {"BatchNormalization", "LRN", "MaxPool", "Dropout", "Gelu", "Exp"}) {
    CHECK(RuleOf(type).is_cheap());
  }
  for (const char* type : {"Conv", "MatMulInteger", "QLinearConv", "LSTM", "Attention"}) {
    CHECK(RuleOf(type).is_costly());
  }
  for (const char* type : {"Add", "Concat", "Softmax"}) {
    CHECK_FALSE((RuleOf(type).is_cheap() || RuleOf(type).is_costly()));
  }
}

TEST_CASE("table of operators: kinds") {
  CHECK(RuleOf("Tile").is_movement());
  CHECK(RuleOf("CastLike").is_movement());
  CHECK_FALSE(RuleOf("Gather").is_movement());
  CHECK(RuleOf("Dropout").is_random());
  CHECK(RuleOf("BitwiseNot").is_elementwise());
  CHECK_FALSE(RuleOf("ArgMax").is_elementwise());
  CHECK(HasGradient("Where"));
  for (const char* type : {"Floor", "Shape", "Constant", "ConstantOfShape", "RandomNormalLike"}) {
    CHECK_FALSE(HasGradient(type));
  }
}

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
