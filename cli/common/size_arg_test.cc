#include "cli/common/size_arg.h"

#include <doctest/doctest.h>

#include <string>

#include "lib/base/rng.h"
#include "lib/base/text.h"
#include "lib/problem/graph/tensor_graph.h"

namespace ckplan {
namespace {

using Kind = Budget::Kind;

TEST_CASE("size: binary and decimal units differ, fractions are exact") {
  const struct {
    std::string text;
    int64_t bytes;
  } kRows[] = {
      {"0", 0},
      {"512", 512},
      {"512B", 512},
      {"16KiB", 16384},
      {"16kB", 16000},
      {"16KB", 16000},
      {"1.5GiB", 1610612736},
      {"16GiB", int64_t{16} << 30},
      {"16GB", 16'000'000'000},
      {"0.1GB", 100'000'000},
      // 0.3 has no exact double, but 0.3 x 10^15 is computed exactly.
      {"0.3PB", 300'000'000'000'000},
      {"8.61GiB", 9244917104},  // 9244917104.64 is cut off.
      {"64PiB", int64_t{1} << 56},
  };
  for (const auto& row : kRows) {
    CAPTURE(row.text);
    const auto size = ParseSize(row.text, "--budget");
    REQUIRE(size.ok());
    CHECK(size->count() == row.bytes);
  }
}

TEST_CASE("size: a text that is no size is kUsage, with the flag and the accepted forms") {
  for (const std::string text :
       {"",       "-1GiB", "+1",  "nan",   "inf",   "1e9",     "16G", "16gib",
        "16 GiB", " 16",   "GiB", ".5GiB", "1.GiB", "1..5GiB", "1.5", "999999999999999999999999",
        "0x10",   "60%",   "min", "1GiBs", "1,5GiB"}) {
    CAPTURE(text);
    const auto size = ParseSize(text, "--paper-budget");
    REQUIRE(!size.ok());
    CHECK(size.error().code == ErrorCode::kUsage);
    CHECK(size.error().message.starts_with("--paper-budget: "));
    CHECK(size.error().message.find("16GiB (binary), 16GB (decimal)") != std::string::npos);
  }
}

TEST_CASE("size: more than any graph may have is refused as too large") {
  for (const char* text : {"65PiB", "99999999TiB"}) {
    const auto size = ParseSize(text, "--budget");
    REQUIRE(!size.ok());
    CHECK(size.error().message == "--budget: " + std::string(text) +
                                      " is too large; the largest size is " +
                                      HumanBytes(kMaxTotalBytes));
  }
}

TEST_CASE("size: any text gives a size in range or an error, and never more than 400 letters") {
  Rng rng(20241);
  const std::string letters = "0123456789.%KMGTPiBkmn-+ eE\xff";
  for (int i = 0; i < 20'000; ++i) {
    std::string text;
    for (int64_t n = rng.Between(0, 300) / (i % 20 + 1); n > 0; --n) {
      text +=
          letters[static_cast<size_t>(rng.Between(0, static_cast<int64_t>(letters.size()) - 1))];
    }
    CAPTURE(text);
    const auto size = ParseSize(text, "--budget");
    if (size.ok()) {
      CHECK(*size >= Bytes(0));
      CHECK(*size <= kMaxTotalBytes);
    } else {
      CHECK(size.error().message.size() < 400);
    }
  }
}

TEST_CASE("budget: bytes, percent and words are distinguished") {
  CHECK(ParseBudget("60%", "-b", {})->kind == Kind::kPercent);
  CHECK(ParseBudget("62.5%", "-b", {})->percent == 62.5);
  CHECK(ParseBudget("min", "-b", {})->kind == Kind::kMin);
  CHECK(ParseBudget("1GiB", "-b", {})->bytes == Bytes(int64_t{1} << 30));
  CHECK(ParseBudget("balanced", "-b", {.balanced = true})->kind == Kind::kBalanced);
}

TEST_CASE("budget: forms that the flag does not take are refused") {
  CHECK(!ParseBudget("60%", "--paper-budget", {.percent = false, .min = true}).ok());
  CHECK(!ParseBudget("min", "--budget-total", {.percent = true, .min = false}).ok());
  CHECK(!ParseBudget("balanced", "--paper-budget", {.percent = false, .min = true}).ok());
  for (const std::string text : {"-60%", "%", "1001%", "60 %", "MIN", ""}) {
    CAPTURE(text);
    CHECK(!ParseBudget(text, "--budget", {}).ok());
  }
}

TEST_CASE("budget: the message about an unreadable text suggests what was probably meant") {
  const struct {
    const char* text;
    const char* meant;
  } kRows[] = {
      {"16G", "16GiB"},    {"16g", "16GiB"},   {"16Gi", "16GiB"},     {"16gb", "16GB"},
      {"16 GiB", "16GiB"}, {"1.5", "1.5GiB"},  {"0.6", "60%"},        {"60 %", "60%"},
      {"MIN", "min"},      {"minimum", "min"}, {"60 percent", "60%"}, {"512m", "512MiB"},
      {"many", ""},        {"-1GiB", ""},      {"1.2.3", ""},         {"", ""},
  };
  for (const auto& row : kRows) {
    CAPTURE(row.text);
    CHECK(SuggestedBudget(row.text, {}) == row.meant);
    const auto budget = ParseBudget(row.text, "-b", {});
    REQUIRE(!budget.ok());
    const bool suggests = budget.error().message.find("did you mean") != std::string::npos;
    CHECK(suggests == (*row.meant != '\0'));
    if (suggests) CHECK(ParseBudget(row.meant, "-b", {}).ok());
  }
  CHECK(SuggestedBudget("min", {.percent = true, .min = false}) == "");
  CHECK(SuggestedBudget("Balance", {.balanced = true}) == "balanced");
  CHECK(SuggestedBudget("Balance", {}) == "");
}

TEST_CASE("budget: a bare number far below the peak is explained") {
  const Bytes peak(int64_t{20} << 30);
  CHECK(BareNumberHint("60", peak, {}) == "\"60\" is 60 bytes; did you mean \"60%\"?");
  CHECK(BareNumberHint("16", peak, {}) == "\"16\" is 16 bytes; did you mean \"16%\" or \"16GiB\"?");
  CHECK(BareNumberHint("16", peak, {.percent = false, .min = true}) ==
        "\"16\" is 16 bytes; did you mean \"16GiB\"?");
  CHECK(BareNumberHint("8000", peak, {}) == "\"8000\" is 8000 bytes; did you mean \"8000MiB\"?");
  CHECK(BareNumberHint("500", peak, {}) == "\"500\" is 500 bytes; sizes take a unit");
  for (const char* const text : {"60%", "60B", "min", "21474837", "0", "", "-5"}) {
    CAPTURE(text);
    CHECK(BareNumberHint(text, peak, {}) == "");
  }
  CHECK(BareNumberHint("60", Bytes(4000), {}) == "");  // The graph is as small as those in papers.
}

TEST_CASE("duration: messages suggest what was probably meant") {
  CHECK(ParseDuration("60", "-t").error().message.find("did you mean \"60s\"?") !=
        std::string::npos);
  CHECK(ParseDuration("2m", "-t").error().message.find("\"2min\"?") != std::string::npos);
  CHECK(ParseDuration("5 sec", "-t").error().message.find("\"5s\"?") != std::string::npos);
  CHECK(ParseDuration("x", "-t").error().message.find("did you mean") == std::string::npos);
}

TEST_CASE("duration: milliseconds, seconds and minutes up to a day") {
  CHECK(ParseDuration("500ms", "-t")->count() == 500);
  CHECK(ParseDuration("1.5s", "-t")->count() == 1500);
  CHECK(ParseDuration("5min", "-t")->count() == 300'000);
  for (const std::string text : {"60", "-1s", "25h", "1441min", "s", ""}) {
    CAPTURE(text);
    CHECK(!ParseDuration(text, "-t").ok());
  }
}

TEST_CASE("integer: it must be within bounds, with no text after it") {
  CHECK(*ParseInteger("64", "-D", 1, 100) == 64);
  for (const std::string text : {"0", "101", "", "6 4", "64x", "+64", "99999999999999999999"}) {
    CAPTURE(text);
    CHECK(!ParseInteger(text, "-D", 1, 100).ok());
  }
}

}  // namespace
}  // namespace ckplan
