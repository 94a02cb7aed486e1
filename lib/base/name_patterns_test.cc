#include "lib/base/name_patterns.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "lib/base/rng.h"
#include "lib/base/stop.h"

namespace ckplan {

namespace {

// Matches by the definition of patterns, without optimisation.
bool MatchesPlainly(std::string_view pattern, std::string_view name) {
  if (pattern.empty()) return name.empty();
  if (pattern.front() == '*') {
    for (size_t taken = 0; taken <= name.size(); ++taken) {
      if (MatchesPlainly(pattern.substr(1), name.substr(taken))) return true;
    }
    return false;
  }
  if (name.empty() || (pattern.front() != '?' && pattern.front() != name.front())) return false;
  return MatchesPlainly(pattern.substr(1), name.substr(1));
}

bool MatchesGlob(std::string_view pattern, std::string_view name) {
  return Glob(pattern).Matches(name);
}

std::string RandomText(Rng& rng, std::string_view letters) {
  std::string text;
  const int64_t length = rng.Between(0, 7);
  for (int64_t i = 0; i < length; ++i) {
    text += letters[static_cast<size_t>(rng.Between(0, static_cast<int64_t>(letters.size()) - 1))];
  }
  return text;
}

}  // namespace

TEST_CASE("glob: the meaning of patterns") {
  CHECK(MatchesGlob("*/relu", "/layer1/layer1.0/relu"));
  CHECK(MatchesGlob("layer?.0", "layer4.0"));
  CHECK_FALSE(MatchesGlob("layer?.0", "layer10.0"));
  CHECK_FALSE(MatchesGlob("relu", "relu_1"));
  CHECK(MatchesGlob("**", ""));
  CHECK_FALSE(MatchesGlob("", "a"));
  CHECK(IsGlob("a*"));
  CHECK(IsGlob("?"));
  CHECK_FALSE(IsGlob("layer1.0/relu[0]"));
}

TEST_CASE("glob: equal to a plain matcher on random texts") {
  int matches = 0;
  Rng rng(1);
  for (int i = 0; i < 20'000; ++i) {
    const std::string pattern = RandomText(rng, "ab*?");
    const std::string name = RandomText(rng, "ab");
    CAPTURE(pattern);
    CAPTURE(name);
    const bool is_match = MatchesPlainly(pattern, name);
    REQUIRE(MatchesGlob(pattern, name) == is_match);
    matches += is_match ? 1 : 0;
  }
  CHECK(matches > 1000);
}

TEST_CASE("glob: patterns of several machine words, up to the longest, match as short ones do") {
  for (const size_t length : {size_t{63}, size_t{64}, size_t{65}, size_t{128}, size_t{997}}) {
    CAPTURE(length);
    const std::string name(length, 'a');
    CHECK(MatchesGlob(name, name));
    CHECK(MatchesGlob("*" + name + "b*", "aaa" + name + "b"));
    CHECK(MatchesGlob(std::string(length, '?') + "b", name + "b"));
    CHECK_FALSE(MatchesGlob(std::string(length, '?') + "b", name + "c"));
    CHECK_FALSE(MatchesGlob("*" + name, name.substr(1)));
    CHECK_FALSE(MatchesGlob(name + "?", name));
  }
}

TEST_CASE("glob: a pattern with wildcards has a maximum length, a name has none") {
  const std::string longest = "*" + std::string(kMaxGlobBytes - 1, '?');
  CHECK(CheckGlob(longest).ok());
  CHECK(MatchesGlob(longest, std::string(kMaxGlobBytes, 'a')));
  CHECK(CheckGlob(std::string(100'000, 'a')).ok());
  const Result<Done> refused = CheckGlob(longest + "?");
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().code == ErrorCode::kUsage);
  CHECK(refused.error().message.find("may have at most 1000 bytes") != std::string::npos);
}

TEST_CASE("glob: matching asks for a stop within a long name") {
  int64_t polls = 0;
  const StopScope scope({}, [&](int64_t) { ++polls; });
  CHECK_FALSE(MatchesGlob("*a?b", std::string(1'000'000, 'a')));
  CHECK(polls > 200);
}

namespace {

const std::vector<NamedThing> kThings = {{{"conv", "c"}, "Conv"},
                                         {{"layer1/relu", "r"}, "Relu"},
                                         {{"layer2/relu", "s"}, "Relu"},
                                         {{"odd*name", "!t"}, "LeakyRelu"}};

// Returns a letter for each thing: "x" if it is selected, "-" if not.
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
        "100001 patterns for a node exceed the limit of 100000; combine some with * or ?");
}

TEST_CASE("name patterns: a stop ends matching") {
  std::stop_source stop;
  stop.request_stop();
  const StopScope scope(stop.get_token());
  CHECK_THROWS_AS((void)ChooseByName({"conv"}, kThings, "node"), Stopped);
}

}  // namespace

}  // namespace ckplan
