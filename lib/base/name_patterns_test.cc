#include "lib/base/name_patterns.h"

#include <doctest/doctest.h>

#include "lib/base/glob.h"
#include "lib/base/stop.h"

namespace ckplan {
namespace {

const std::vector<NamedThing> kThings = {{{"conv", "c"}, "Conv"},
                                         {{"layer1/relu", "r"}, "Relu"},
                                         {{"layer2/relu", "s"}, "Relu"},
                                         {{"odd*name", "!t"}, "LeakyRelu"}};

// Returns a letter for each thing: "x" if it is chosen, "-" if not.
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

TEST_CASE("name patterns: a pattern that fits nothing is an error that suggests a near name") {
  CHECK(Chosen({"conv", "layer1/rleu"}) ==
        "no node is called \"layer1/rleu\"; did you mean \"layer1/relu\"?");
  CHECK(Chosen({"op:Rely"}) == "no node is of the type \"Rely\"; did you mean \"Relu\"?");
  CHECK(Chosen({"layer9*"}) == "no node is called \"layer9*\"");
  CHECK(Chosen({"conv", "!op:Gemm"}) == "no node is of the type \"Gemm\"");
  CHECK(Chosen({"layer9*,!conv"}) ==
        "no node is called \"layer9*,!conv\"; repeat the flag for each pattern of a list");
  CHECK(ChooseByName({"x"}, {}, "node").error().code == ErrorCode::kUsage);
}

TEST_CASE("name patterns: wildcards in a pattern of more than 1000 bytes are refused") {
  CHECK(Chosen({"!op:" + std::string(1001, '?')}).starts_with("the pattern \"????"));
  CHECK(Chosen({std::string(1001, 'x')}).starts_with("no node is called"));
}

TEST_CASE("name patterns: a list has a maximum length") {
  CHECK(Chosen(NamePatterns(kMaxPatterns, "conv")) == "x---");
  CHECK(Chosen(NamePatterns(kMaxPatterns + 1, "conv")) ==
        "there are 100001 patterns to choose a node by, and there may be 100000; write some as one "
        "with * or ?");
}

TEST_CASE("name patterns: a stop ends matching") {
  std::stop_source stop;
  stop.request_stop();
  const StopScope scope(stop.get_token());
  CHECK_THROWS_AS((void)ChooseByName({"conv"}, kThings, "node"), Stopped);
}

}  // namespace
}  // namespace ckplan
