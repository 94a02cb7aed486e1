#include "lib/base/dim_expression.h"

#include <doctest/doctest.h>

#include "lib/files/model/bind_dims.h"
#include "lib/files/model/testing/models.h"

namespace ckplan {
namespace {

TEST_CASE("dim expressions: values are those of Python") {
  struct Row {
    const char* name;
    int64_t value;
  };
  const std::map<std::string, int64_t> sizes = {{"B", 3}, {"s0", 7}, {"a.b", 2}, {"past_len", 0}};
  const Row rows[] = {{"2*B", 6},
                      {"B + 1", 4},
                      {"past_len + s0", 7},
                      {"B*(s0 - 1)", 18},
                      {"s0//2", 3},
                      {"-((-s0)//2)", 4},
                      {"(s0 + 1)/2", 4},
                      {"floor(s0/2 - 1/2) + 1", 4},
                      {"floor(s0/2 + 1/4)", 3},
                      {"ceiling(s0/2)", 4},
                      {"Max(1, B, s0)", 7},
                      {"Min(B, s0)", 3},
                      {"s0 % 4", 3},
                      {"Mod(s0, 4)", 3},
                      {"FloorDiv(s0, 2)", 3},
                      {"B**2", 9},
                      {"2*a.b", 4},
                      {"B - s0", -4},
                      {"2*3", 6}};
  for (const Row& row : rows) {
    CAPTURE(row.name);
    CHECK(EvaluateDim(row.name, sizes) == row.value);
  }
}

TEST_CASE("dim expressions: what has no value has none") {
  const std::map<std::string, int64_t> sizes = {{"B", 3}, {"N", int64_t{1} << 62}};
  for (const char* name : {"B", "", "B/2", "B/0", "B%0", "4*N", "N*N", "B**99", "2*C", "2*", "(B",
                           "B)", "2B+1", "batch size", "f(B)", "B++", "99999999999999999999*B"}) {
    CAPTURE(name);
    CHECK(!EvaluateDim(name, sizes));
  }
  CHECK(!EvaluateDim(std::string(10'000, '(') + "B", sizes));
  CHECK(!EvaluateDim(std::string(10'000, '-') + "B/2", sizes));
}

constexpr const char* kDerived =
    "g (float[B,4] a, float[\"2*B\",4] b) => (float[\"2*B\",4] y) { c = Concat<axis = 0>(a, a) y = "
    "Add(c, "
    "b) }";

TEST_CASE("dim expressions: names that are expressions follow their variables") {
  const auto model = LoadText(kDerived, {{{"B", 3}}, {}});
  REQUIRE(model.ok());
  CHECK(model->dims() == DimSizes{{"B", 3}});
  CHECK(LoadText(kDerived, {{{"B", 3}, {"2*B", 6}}, {}}).ok());
  const auto other = LoadText(kDerived, {{{"B", 3}, {"2*B", 7}}, {}});
  REQUIRE_FALSE(other.ok());
  CHECK(other.error().code == ErrorCode::kUsage);
  CHECK(other.error().message.find("\"2*B\" cannot be 7: with B=3 it is 6") != std::string::npos);
  const auto open = LoadText(kDerived);
  REQUIRE_FALSE(open.ok());
  CHECK(open.error().message.find("open dimensions: B (input \"a\")") != std::string::npos);
  REQUIRE(open.error().remedy.settings.size() == 1);
  CHECK(open.error().remedy.settings[0].value == "B=...");
}

TEST_CASE("dim expressions: the shapes that inputs are given must agree on each name") {
  const auto refusal = [](const DimSizes& dims, const InputShapes& shapes) {
    const auto model = LoadText(kDerived, {dims, shapes});
    REQUIRE_FALSE(model.ok());
    CHECK(model.error().code == ErrorCode::kUsage);
    return model.error().message;
  };
  const std::string message = "dimension \"2*B\" cannot be 7: with B=3 it is 6";
  CHECK(refusal({{"B", 3}}, {{"b", {7, 4}}}).find(message) != std::string::npos);
  CHECK(refusal({}, {{"a", {3, 4}}, {"b", {7, 4}}}).find(message) != std::string::npos);
  CHECK(refusal({{"B", 3}}, {{"a", {4, 4}}})
            .find("dimension \"B\" of input \"a\" cannot be both 3 and 4") != std::string::npos);
  CHECK(LoadText(kDerived, {{{"B", 3}}, {{"b", {6, 4}}}}).ok());
}

TEST_CASE("dim expressions: names are shown as they are written, in any alphabet") {
  const auto open = LoadText("g (float[\"größe\",4] x) => (float[N,4] y) { y = Relu(x) }");
  REQUIRE_FALSE(open.ok());
  REQUIRE(open.error().remedy.settings.size() == 1);
  CHECK(open.error().remedy.settings[0].value == "größe=...");
  CHECK(ShortName(std::string(90, 'a')) == std::string(80, 'a') + "...");
  std::string umlauts;
  for (int i = 0; i < 80; ++i) umlauts += "ö";
  CHECK(ShortName(umlauts) == umlauts);
  CHECK(ShortName(umlauts + "ö") == umlauts + "...");
  CHECK(ShortName("a\x1b[2J\xff\n") == "a?[2J??");
}

TEST_CASE("dim expressions: a variable that stands nowhere else can be bound, and so can a name") {
  const std::string graph = "g (float[\"2*B\",4] x) => (float[\"2*B\",4] y) { y = Relu(x) }";
  CHECK(LoadText(graph, {{{"B", 3}}, {}}).ok());
  CHECK(LoadText(graph, {{{"2*B", 7}}, {}}).ok());
  const std::string dashed = "g (float[\"batch-size\",4] x) => (float[M,4] y) { y = Relu(x) }";
  CHECK(LoadText(dashed, {{{"batch-size", 3}}, {}}).ok());
  const auto halved = LoadText(
      "g (float[H,4] x, float[\"H/2\",4] z) => (float[H,4] y) { y = Relu(x) }", {{{"H", 7}}, {}});
  REQUIRE_FALSE(halved.ok());
  CHECK(halved.error().message.find("\"H/2\" of input \"z\" has no size with H=7") !=
        std::string::npos);
}

TEST_CASE("dim expressions: 0 is a size, unless every output is empty") {
  const std::string cached =
      "g (float[N,P,4] past, float[N,S,4] x) => (float[N,\"P + S\",4] y) { y = Concat<axis = "
      "1>(past, "
      "x) }";
  CHECK(LoadText(cached, {{{"N", 2}, {"P", 0}, {"S", 5}}, {}}).ok());
  CHECK(LoadText(cached, {{{"N", 2}, {"S", 5}}, {{"past", {2, 0, 4}}}}).ok());
  const auto empty = LoadText(cached, {{{"N", 0}, {"P", 3}, {"S", 5}}, {}});
  REQUIRE_FALSE(empty.ok());
  CHECK(empty.error().code == ErrorCode::kUsage);
  CHECK(empty.error().message.find("\"N\" cannot be 0") != std::string::npos);
  CHECK(LoadText(
            "g (float[2,0,4] p, float[2,5,4] x) => (float[2,5,4] y) { y = Concat<axis = 1>(p, x) }")
            .ok());
}

}  // namespace
}  // namespace ckplan
