#include "cli/common/text_table.h"

#include <doctest/doctest.h>

#include "lib/base/text.h"

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

TEST_CASE("table: CSV quotes text that would break a row") {
  CHECK(kTable.Csv() == "name,bytes\n\"a,\"\"b\"\"\",7\ngröße|x,1024\n");
}

TEST_CASE("table: Markdown escapes text that would break a row") {
  CHECK(kTable.Markdown() ==
        "| name | bytes |\n| --- | ---: |\n| a,\"b\" | 7 |\n| größe\\|x | 1024 |\n");
}

TEST_CASE("table: a name can neither break a row nor control a terminal") {
  const TextTable table = {{{"name"}, {"n"}}, {{"a\nb\033[1m", "1"}, {"c\xff,", "2"}}};
  CHECK(table.Text() == "name         n\na\\nb\\x1b[1m  1\nc\\xff,       2\n");
  CHECK(table.Csv() == "name,n\na\\nb\\x1b[1m,1\n\"c\\xff,\",2\n");
  CHECK(table.Markdown() ==
        "| name | n |\n| --- | --- |\n| a\\\\nb\\\\x1b[1m | 1 |\n| c\\\\xff, | 2 |\n");
}

// Returns whether each line of the text is at most `width` columns wide.
bool Fits(const std::string& text, size_t width) {
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\n', begin);
    if (CharacterCount(std::string_view(text).substr(begin, end - begin)) > width) return false;
    begin = end + 1;
  }
  return true;
}

TEST_CASE("table: a table that is too wide shortens names, wraps sentences and drops columns") {
  using Fit = TableColumn::Fit;
  const TextTable table = {
      {{"algorithm", false, Fit::kElide},
       {"arena", true, Fit::kWhole, 1},
       {"what it does", false, Fit::kWrap}},
      {{"kusumoto-exhaustive", "17.58", "tries every canonical strategy of small graphs"}}};
  const std::string whole = table.Text();
  CHECK(table.Text(0, 74) == whole);
  CHECK(table.Text(0, 73) ==
        "algorithm           arena  what it does\n"
        "kusumot...haustive  17.58  tries every canonical strategy of small graphs\n");
  CHECK(table.Text(0, 50) ==
        "algorithm     arena  what it does\n"
        "kusu...stive  17.58  tries every canonical\n"
        "                     strategy of small graphs\n");
  CHECK(table.Text(2, 40) ==
        "  algorithm     what it does\n"
        "  kusu...stive  tries every canonical\n"
        "                strategy of small graphs\n");
}

TEST_CASE("table: columns that still do not fit follow in tables below") {
  const TextTable table = {{{""}, {"one", true}, {"two", true}, {"three", true}},
                           {{"nodes", "1000", "2000", "3000"}, {"peak", "1 B", "2 B", "3 B"}}};
  CHECK(table.Text(0, 17) ==
        "        one   two\n"
        "nodes  1000  2000\n"
        "peak    1 B   2 B\n"
        "\n"
        "       three\n"
        "nodes   3000\n"
        "peak     3 B\n");
  for (size_t width = 12; width < 30; ++width) CHECK(Fits(table.Text(0, width), width));
}

TEST_CASE("help: descriptions and sentences are folded, commands stay whole") {
  const std::string help =
      "Example:\n"
      "  ckplan resnet50.onnx -D N=64 --budget 60%\n"
      "\n"
      "Plans one model for one step.\n"
      "  --budget SIZE   largest peak of the plan\n"
      "  -h              show this\n";
  CHECK(Folded(help, TextTable::kAnyWidth) == help);
  CHECK(Folded(help, 38) ==
        "Example:\n"
        "  ckplan resnet50.onnx -D N=64 --budget 60%\n"
        "\n"
        "Plans one model for one step.\n"
        "  --budget SIZE   largest peak of the\n"
        "                  plan\n"
        "  -h              show this\n");
  CHECK(Folded(help, 24) ==
        "Example:\n"
        "  ckplan resnet50.onnx -D N=64 --budget 60%\n"
        "\n"
        "Plans one model for one\n"
        "step.\n"
        "  --budget SIZE\n"
        "      largest peak of\n"
        "      the plan\n"
        "  -h\n"
        "      show this\n");
}

TEST_CASE("elided apart: different names stay different") {
  const std::vector<std::string> names = {"/layers/layers.0/blocks.0/attn/softmax/Softmax",
                                          "/layers/layers.0/blocks.1/attn/softmax/Softmax",
                                          "short"};
  REQUIRE(Elided(names[0], 24) == Elided(names[1], 24));
  const std::vector<std::string> apart = ElidedApart(names, 24);
  CHECK(apart ==
        std::vector<std::string>{"...0/attn/so...x/Softmax", "...1/attn/so...x/Softmax", "short"});
}

TEST_CASE("wrapped: a number stays with its unit") {
  CHECK(Wrapped("inputs 96.00 KiB, and 3 more", 13) ==
        std::vector<std::string>{"inputs", "96.00 KiB,", "and 3 more"});
  // Parts stay whole, and no line ends with the blanks between them.
  CHECK(Wrapped("opset 20   68 nodes   N=16", 20) ==
        std::vector<std::string>{"opset 20   68 nodes", "N=16"});
  CHECK(Wrapped("opset 20   68 nodes   N=16", 14) ==
        std::vector<std::string>{"opset 20", "68 nodes", "N=16"});
  CHECK(Wrapped("order: gap 84.25 MiB   (moments)", 18) ==
        std::vector<std::string>{"order: gap", "84.25 MiB", "(moments)"});
  CHECK(Wrapped("step 3 Break", 7) == std::vector<std::string>{"step 3", "Break"});
}

TEST_CASE("table: LaTeX escapes what it would read as commands") {
  TextTable table;
  table.columns = {{"a_b"}, {"time", true}};
  table.rows = {{"x\\y", "+5%"}};
  CHECK(table.Latex() ==
        "\\begin{tabular}{lr}\n\\hline\na\\_b & time \\\\\n\\hline\nx\\textbackslash{}y & "
        "+5\\% \\\\\n\\hline\n\\end{tabular}\n");
}

TEST_CASE("table: LaTeX has a rule above each row that asks for one") {
  TextTable table;
  table.columns = {{"a"}};
  table.rows = {{"x"}, {""}, {"y"}};
  CHECK(table.Latex({2}) ==
        "\\begin{tabular}{l}\n\\hline\na \\\\\n\\hline\nx \\\\\n \\\\\n\\hline\ny "
        "\\\\\n\\hline\n\\end{tabular}\n");
}

TEST_CASE("elided: keeps both ends, cuts between characters, and has the requested width") {
  CHECK(Elided("abcdefghij", 10) == "abcdefghij");
  CHECK(Elided("abcdefghij", 8) == "ab...hij");
  CHECK(Elided("ääääääääää", 8) == "ää...äää");
  CHECK(Elided("abcdefghij", 2) == "..");
}

TEST_CASE("elided: a name keeps the part that says which stage it is of, and its end") {
  const std::string name = "/bert/encoder/layer.11/attention/self/query/MatMul";
  CHECK(Elided(name, 26) == "...layer.11/...uery/MatMul");
  CHECK(Elided(name, 22) == "...layer.11/.../MatMul");
  CHECK(Elided(name, 20) == "/bert/en...ry/MatMul");  // No room for both.
  CHECK(Elided(name, 45) == "...coder/layer.11/attention/self/query/MatMul");
  CHECK(Elided("layer4.2.bn3.running_variance", 24) == "layer4.2.b...ng_variance");
  CHECK(Elided("features.denseblock3.conv2.weight", 26) == "...denseblock3....2.weight");
  CHECK(Elided("encoder.attention.output.weight2", 20) == "encoder....t.weight2");
}

}  // namespace
}  // namespace ckplan
