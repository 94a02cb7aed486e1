#include "lib/base/text.h"

#include <doctest/doctest.h>

#include <string>

namespace ckplan {

TEST_CASE("printable: visible text stays as it is") {
  for (const std::string text :
       {"", "conv1/Relu_0", "C:\\new \"x\"", "é 日本 🙂", "\xc2\xa0|\xee\x80\x80"}) {
    CAPTURE(text);
    CHECK(Printable(text) == text);
    CHECK(PrintableMessage(text) == text);
  }
}

TEST_CASE("printable: invisible characters are spelled out") {
  const struct {
    std::string text, shown;
  } kRows[] = {
      {"\033[31mred", "\\x1b[31mred"},
      {"a\nb\tc\rd", "a\\nb\\tc\\rd"},
      {std::string("\0x", 2), "\\x00x"},
      {"\x7f", "\\x7f"},
      {"\xc2\x80|\xc2\x9b|\xc2\x9f", "\\u0080|\\u009b|\\u009f"},  // C1 control characters.
      {"\xe2\x80\xae", "\\u202e"},                                // Right-to-left override.
      {"\xe2\x81\xa6\xe2\x81\xa9\xe2\x80\x8f\xd8\x9c", "\\u2066\\u2069\\u200f\\u061c"},
      {"\xe2\x80\x8b\xef\xbb\xbf\xe2\x80\xa8", "\\u200b\\ufeff\\u2028"},
      {"\xef\xbf\xbf\xf0\x9f\xbf\xbe", "\\uffff\\U0001fffe"},  // Noncharacters.
      {"\xf3\xa0\x81\x81", "\\U000e0041"},                     // A tag.
  };
  for (const auto& row : kRows) {
    CAPTURE(row.shown);
    CHECK(Printable(row.text) == row.shown);
    CHECK(Printable("\"" + row.text + "\"") == "\"" + row.shown + "\"");
  }
}

TEST_CASE("printable: bytes that are not UTF-8 are spelled one by one, the rest stays") {
  const struct {
    std::string bytes, shown;
  } kRows[] = {
      {"a\xff"
       "b",
       "a\\xffb"},
      {"\xc0\xaf", "\\xc0\\xaf"},                    // Overlong.
      {"\xed\xa0\x80", "\\xed\\xa0\\x80"},           // A surrogate.
      {"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"},  // Above U+10FFFF.
      {"\xe6\x97", "\\xe6\\x97"},                    // Cut off.
      {"\xe6\x97\xa5\x80", "日\\x80"},
      {"\x9b", "\\x9b"},  // A control sequence for terminals that do not use UTF-8.
  };
  for (const auto& row : kRows) {
    CAPTURE(row.shown);
    CHECK(Printable(row.bytes) == row.shown);
  }
}

TEST_CASE("printable: a long text is cut to its two ends and its size") {
  const std::string million(1'000'000, 'x');
  const std::string shown = Printable("<" + million + ">", 60);
  CHECK(shown == "<xxxxxxxxxxxxxxxxxx... [1000002 bytes] ...xxxxxxxxxxxxxxxxx>");
  CHECK(CharacterCount(shown) == 60);
  CHECK(Printable(std::string(60, 'x'), 60) == std::string(60, 'x'));
  const std::string wide = Printable("äöüß日本語" + million, 40);
  CHECK(CharacterCount(wide) == 40);
  CHECK(Printable(wide) == wide);  // The text is cut between characters.
  CHECK(CharacterCount(Printable(std::string(1'000'000, '\033'), 80)) == 80);
}

TEST_CASE("printable: a long name in a message hides neither what follows it nor another one") {
  const std::string name(100'000, 'n');
  const std::string text =
      PrintableMessage("node \"" + name + "\" reads \"\033" + name + "\"; try --budget 5GiB");
  CHECK(text.size() < 400);
  CHECK(text.starts_with("node \"nnn"));
  CHECK(text.find("nnn... [100000 bytes] ...nnn") != std::string::npos);
  CHECK(text.find("\" reads \"\\x1bnnn") != std::string::npos);
  CHECK(text.ends_with("nnn\"; try --budget 5GiB"));
  std::string many = "open dimensions: ";
  for (int i = 0; i < 1000; ++i) many += "\"N" + std::to_string(i) + "\", ";
  const std::string shown = PrintableMessage(many + "bind them");
  CHECK(shown.size() <= 1500);
  CHECK(shown.ends_with("bind them"));
  CHECK(PrintableMessage("one\ntwo \"thr\nee") == "one\\ntwo \"thr\\nee");
}

}  // namespace ckplan
