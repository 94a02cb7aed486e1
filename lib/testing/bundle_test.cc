#include "lib/testing/bundle.h"

#include <doctest/doctest.h>

#include <string>

namespace ckplan {

TEST_CASE("bundle: texts keep their empty lines, and are written as they were read") {
  const std::string text =
      "# Two texts and some bytes.\n\n"
      "======== one\nfirst line\n\n======= seven signs are no heading\n\n\n"
      "======== none\n\n"
      "======== empty_line\n\n\n"
      "======== cut no-newline\none\ntwo\n\n"
      "======== bytes base64\nAP8K\n";
  Result<Bundle> bundle = ParseBundle(text);
  REQUIRE(bundle.ok());
  CHECK(bundle->head == "# Two texts and some bytes.\n");
  REQUIRE(bundle->entries.size() == 5);
  CHECK(bundle->Find("one")->text == "first line\n\n======= seven signs are no heading\n\n");
  CHECK(bundle->Find("none")->text.empty());
  CHECK(bundle->Find("empty_line")->text == "\n");
  CHECK(bundle->Find("cut")->text == "one\ntwo");
  CHECK(bundle->Find("bytes")->text == std::string("\0\xFF\n", 3));
  CHECK(bundle->Find("two") == nullptr);
  CHECK(bundle->Find("one")->line == 3);
  CHECK(bundle->Find("bytes")->line == 18);
  CHECK(FormatBundle(*bundle) == text);
}

TEST_CASE("bundle: bytes of every length return from base64") {
  std::string bytes;
  for (int size = 0; size < 200; ++size) {
    CAPTURE(size);
    Bundle written;
    written.entries = {{"bytes", bytes, BundleForm::kBase64}, {"text", "a\n"}};
    Result<Bundle> read = ParseBundle(FormatBundle(written));
    REQUIRE(read.ok());
    CHECK(read->Find("bytes")->text == bytes);
    bytes += static_cast<char>(size * 167);
  }
}

TEST_CASE("bundle: faults are refused by name") {
  const struct {
    std::string text;
    std::string message;
  } kRows[] = {
      {"", "the bundle has no line \"======== NAME\""},
      {"# a\n======== b\n", "no empty line before the first heading"},
      {"======== a\nx\n======== b\n", "no empty line between 'a' and the next heading"},
      {"======== a\n\n======== a\n", "two entries are named 'a'"},
      {"======== a b\n", "'a b' can't name an entry"},
      {"======== ", "'' can't name an entry"},
      {"======== a=b", "'a=b' can't name an entry"},
      {"======== a base64\nAP8\n", "the base64 of 'a' is damaged"},
      {"======== a base64\nAP9=\n", "the base64 of 'a' is damaged"},
      {"======== a base64\nA-8K\n", "the base64 of 'a' is damaged"},
  };
  for (const auto& row : kRows) {
    CAPTURE(row.text);
    const Result<Bundle> bundle = ParseBundle(row.text);
    REQUIRE(!bundle.ok());
    CHECK(bundle.error().message == row.message);
  }
}

}  // namespace ckplan
