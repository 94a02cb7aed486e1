#include <doctest/doctest.h>

#include <limits>
#include <string>

#include "lib/files/emit/json_reader.h"
#include "lib/files/emit/json_writer.h"

namespace ckplan {

TEST_CASE("json writer: a row per line, long lists sixteen to a line") {
  JsonWriter json;
  json.BeginObject(JsonLayout::kLines);
  json.Key("rows").BeginArray(JsonLayout::kLines);
  json.BeginObject(JsonLayout::kInline).Key("id").Integer(-1).Key("ok").Boolean(true).End();
  json.BeginArray(JsonLayout::kInline).Null().Text("t").End();
  json.End();
  json.Key("none").BeginArray(JsonLayout::kLines).End();
  json.Key("many").BeginArray(JsonLayout::kWrapped);
  for (int i = 0; i < 18; ++i) json.Integer(i);
  json.End().End();
  CHECK(std::move(json).Finish() == R"({
  "rows": [
    {"id": -1, "ok": true},
    [null, "t"]
  ],
  "none": [],
  "many": [
    0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
    16, 17
  ]
}
)");
}

TEST_CASE("json writer: a JSON parser reads back its quoted text") {
  for (const std::string& text : {std::string("a\"b\\c\n\t\x01\x1f\x7f"), std::string("\0x", 2),
                                  std::string("é 日本 🙂"), std::string("</script>"),
                                  std::string("\xe2\x80\xae\xc2\x9b"),
                                  std::string("\xf0\x9f\xbf\xbe\xf4\x8f\xbf\xbf"), std::string()}) {
    CAPTURE(text);
    JsonWriter json;
    json.Text(text);
    const std::string written = std::move(json).Finish();
    const Result<JsonDocument> document = JsonDocument::Parse(written, "x");
    CHECK(document->root().Text() == text);
  }
}

TEST_CASE("json writer: invisible characters are escaped") {
  JsonWriter json;
  json.Text("\033\x7f\xc2\x9b\xe2\x80\xae\xef\xbb\xbf\xf3\xa0\x81\x81");
  CHECK(std::move(json).Finish() == "\"\\u001b\\u007f\\u009b\\u202e\\ufeff\\udb40\\udc41\"\n");
}

TEST_CASE("json writer: bytes that are not UTF-8 become U+FFFD, the rest stays") {
  const std::string bad = "\xef\xbf\xbd";
  const struct {
    std::string bytes, repaired;
  } kRows[] = {
      {"a\xff"
       "b",
       "a" + bad + "b"},
      {"\xc0\xaf", bad + bad},                      // Overlong.
      {"\xed\xa0\x80", bad + bad + bad},            // A surrogate.
      {"\xf4\x90\x80\x80", bad + bad + bad + bad},  // Above U+10FFFF.
      {"\xe6\x97", bad + bad},                      // Cut off.
      {"\xf0\x9f\x99\x82\xf4\x8f\xbf\xbd", "\xf0\x9f\x99\x82\xf4\x8f\xbf\xbd"},
  };
  for (const auto& row : kRows) {
    CAPTURE(row.bytes);
    JsonWriter json;
    json.Text(row.bytes);
    CHECK(std::move(json).Finish() == "\"" + row.repaired + "\"\n");
  }
}

TEST_CASE("json reader: all faults are reported with their places") {
  const Result<JsonDocument> document = JsonDocument::Parse(
      R"({"a/b": [0, {"x": 1.0}], "t": true, "big": 9223372036854775808, "neg": -1})", "f.json");
  const JsonView root = document->root();
  root["a/b"].at(1)["x"].Integer();
  root["t"].Integer();
  root["big"].Integer();
  root["neg"].Integer();
  root["a/b"].at(0)["deeper"]["still"].Text();
  root["gone"].Boolean();
  root["a/b"].at(2).Integer();
  const Error error = document->Status().error();
  CHECK(error.code == ErrorCode::kInvalidInput);
  CHECK(error.message ==
        "f.json: /a~1b/1/x: is a number that is not a 64-bit integer, must be an integer");
  REQUIRE(error.notes.size() == 6);
  CHECK(error.notes[0] == "/t: is a boolean, must be an integer");
  CHECK(error.notes[1].find("/big: 9223372036854775808 is out of range") == 0);
  CHECK(error.notes[2].find("/neg: -1 is out of range; it must be from 0") == 0);
  CHECK(error.notes[3] == "/a~1b/0: is an integer, must be an object");
  CHECK(error.notes[4] == "/: the key \"gone\" is missing");
  CHECK(error.notes[5] == "/a~1b: member 2 is missing");
}

TEST_CASE("json reader: the largest integer is read, one more is not") {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  const Result<JsonDocument> document = JsonDocument::Parse("[9223372036854775807]", "x");
  CHECK(document->root().at(0).Integer() == kMax);
  CHECK(document->Status().ok());
  const Result<JsonDocument> huge = JsonDocument::Parse("[99999999999999999999]", "x");
  huge->root().at(0).Integer();
  CHECK_FALSE(huge->Status().ok());
}

TEST_CASE("json reader: ten of many faults are reported, and the number of further ones") {
  const Result<JsonDocument> document = JsonDocument::Parse("{}", "x");
  for (int i = 0; i < 31; ++i) document->root()["key " + std::to_string(i)].Integer();
  const Error error = document->Status().error();
  CHECK(error.message == "x: /: the key \"key 0\" is missing");
  CHECK(error.notes.size() == 10);
  CHECK(error.notes.back() == "and 21 more faults");
}

TEST_CASE("json reader: a fault in many places is reported once, with the number of places") {
  const Result<JsonDocument> document = JsonDocument::Parse("[null, true, null, null]", "x");
  for (size_t i = 0; i < 4; ++i) {
    document->root().at(i).Integer();
    document->root().at(i).Integer();
  }
  const Error error = document->Status().error();
  CHECK(error.message == "x: /0: is null, must be an integer, here and in 2 more places");
  CHECK(error.notes == std::vector<std::string>{"/1: is a boolean, must be an integer"});
}

TEST_CASE("json reader: damaged text is reported by line and column") {
  const struct {
    std::string text, message;
  } kRows[] = {
      {"", "f: line 1, column 1: the text ends unexpectedly; write the file again"},
      {"{\n  \"a\": 1,\n  b\n}", "f: line 3, column 3: not valid JSON; write the file again"},
      {"[1, 2", "f: line 1, column 6: the text ends unexpectedly; write the file again"},
      {"[1] x", "f: line 1, column 5: not valid JSON; write the file again"},
      {"[\"\xff\"]", "f: line 1, column 3: not valid JSON; write the file again"},
      {"[1e999]", "f: line 1, column 6: not valid JSON; write the file again"},
  };
  for (const auto& row : kRows) {
    CAPTURE(row.text);
    const Result<JsonDocument> document = JsonDocument::Parse(row.text, "f");
    REQUIRE_FALSE(document.ok());
    CHECK(document.error().code == ErrorCode::kInvalidInput);
    CHECK(document.error().message == row.message);
  }
}

TEST_CASE("json reader: deep nesting is refused, not recursed into") {
  for (const std::string& bracket : {std::string("["), std::string("{\"a\":")}) {
    std::string text;
    for (int i = 0; i < 1'000'000; ++i) text += bracket;
    const Result<JsonDocument> document = JsonDocument::Parse(text, "f");
    REQUIRE_FALSE(document.ok());
    CHECK(document.error().message.find("nest deeper than 100 levels") != std::string::npos);
  }
  // Brackets inside a string do not nest.
  CHECK(
      JsonDocument::Parse("\"" + std::string(500, '[') + "\\\"" + std::string(500, '{') + "\"", "f")
          .ok());
  CHECK(JsonDocument::Parse(std::string(100, '[') + std::string(100, ']'), "f").ok());
}

TEST_CASE("json reader: a key that an object has twice is refused, however it is written") {
  const auto parses = [](const std::string& text) {
    return JsonDocument::Parse(text, "x.json").ok();
  };
  CHECK(parses(R"({"a": {"b": 1}, "b": [{"a": 1}, {"a": ":{,"}]})"));
  CHECK_FALSE(parses(R"({"a": 1, "b": 2, "a": 1})"));
  CHECK_FALSE(parses(R"([[{"x": {"a": 1, "\u0061": 2}}]])"));
  CHECK_FALSE(parses(R"({"": 1, "": 2})"));
  CHECK(JsonDocument::Parse(R"({"a": {"k": 1, "k": {}}})", "x.json").error().message ==
        "x.json: an object has the key \"k\" twice; remove one of them");
}

TEST_CASE("json reader: a text that would need too much memory is refused before it is parsed") {
  const auto fault = [](const std::string& text) {
    return JsonDocument::Parse(text, "x.json").error().message;
  };
  const std::string deep(1'000'000, '[');
  CHECK(fault(deep) ==
        "x.json: its brackets nest deeper than 100 levels, more than ckplan accepts");
  CHECK(fault(std::string(size_t{1} << 26, ',')).find("more than 33554432 values") !=
        std::string::npos);
  const std::string long_text = '"' + std::string(1'000'000, 'x') + '"';
  CHECK(JsonDocument::Parse(long_text, "x.json")->root().Text().size() == 1'000'000);
  CHECK(fault(std::string(1'000'000, '9') + "e999999").find("line 1") != std::string::npos);
}

}  // namespace ckplan
