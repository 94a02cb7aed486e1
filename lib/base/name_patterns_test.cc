#include "lib/base/name_patterns.h"

#include <doctest/doctest.h>

namespace ckplan {
namespace {

const std::vector<NamedThing> kThings = {{{"conv", "c"}, "Conv"},
                                         {{"layer1/relu", "r"}, "Relu"},
                                         {{"layer2/relu", "s"}, "Relu"},
                                         {{"odd*name", "!t"}, "LeakyRelu"}};

// The chosen ones as letters: "x" chosen, "-" not.
std::string Chosen(const NamePatterns& patterns) {
  const Result<std::vector<bool>> chosen = ChooseByName(patterns, kThings, "node");
  if (!chosen.ok()) return chosen.error().message;
  std::string text;
  for (const bool is_chosen : *chosen) text += is_chosen ? 'x' : '-';
  return text;
}

TEST_CASE("name patterns: names, globs, types, and exceptions in their order") {
  CHECK(Chosen({}) == "----");
  CHECK(Chosen({"conv"}) == "x---");
  CHECK(Chosen({"c", "s"}) == "x-x-");
  CHECK(Chosen({"layer*"}) == "-xx-");
  CHECK(Chosen({"op:Relu"}) == "-xx-");
  CHECK(Chosen({"op:*Relu"}) == "-xxx");
  CHECK(Chosen({"op:*Relu", "!layer1*"}) == "--xx");
  CHECK(Chosen({"op:*Relu", "!layer*", "layer2/relu"}) == "--xx");
  CHECK(Chosen({"!conv"}) == "-xxx");
  CHECK(Chosen({"!op:*Relu"}) == "x---");
  CHECK(Chosen({"odd*name"}) == "---x");
}

TEST_CASE("name patterns: one that fits nothing is an error with a near name") {
  CHECK(Chosen({"conv", "layer1/rleu"}) ==
        "no node is called \"layer1/rleu\"; did you mean \"layer1/relu\"?");
  CHECK(Chosen({"op:Rely"}) == "no node is of the type \"Rely\"; did you mean \"Relu\"?");
  CHECK(Chosen({"layer9*"}) == "no node is called \"layer9*\"");
  CHECK(Chosen({"conv", "!op:Gemm"}) == "no node is of the type \"Gemm\"");
  CHECK(ChooseByName({"x"}, {}, "node").error().code == ErrorCode::kUsage);
}

}  // namespace
}  // namespace ckplan
