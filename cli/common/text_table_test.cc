#include "cli/common/text_table.h"

#include <doctest/doctest.h>

namespace ckplan {
namespace {

const TextTable kTable = {{{"name"}, {"bytes", true}}, {{"a,\"b\"", "7"}, {"größe|x", "1024"}}};

TEST_CASE("table: text aligns by characters, not bytes, and ends no line with blanks") {
  CHECK(kTable.Text(2) ==
        "  name     bytes\n"
        "  a,\"b\"        7\n"
        "  größe|x   1024\n");
  CHECK(TextTable{{{"name"}, {"note"}}, {{"a", ""}}}.Text() == "name  note\na\n");
}

TEST_CASE("table: CSV quotes what would break a row") {
  CHECK(kTable.Csv() == "name,bytes\n\"a,\"\"b\"\"\",7\ngröße|x,1024\n");
}

TEST_CASE("table: Markdown escapes what would break a row") {
  CHECK(kTable.Markdown() ==
        "| name | bytes |\n| --- | ---: |\n| a,\"b\" | 7 |\n| größe\\|x | 1024 |\n");
}

TEST_CASE("elided: keeps both ends, cuts between characters, and has the width asked for") {
  CHECK(Elided("abcdefghij", 10) == "abcdefghij");
  CHECK(Elided("abcdefghij", 8) == "ab...hij");
  CHECK(Elided("ääääääääää", 8) == "ää...äää");
  CHECK(Elided("abcdefghij", 2) == "..");
}

}  // namespace
}  // namespace ckplan
