#include "lib/problem/ops/op_table.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

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

}  // namespace

}  // namespace ckplan
