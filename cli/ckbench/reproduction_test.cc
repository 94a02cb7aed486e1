#include "cli/ckbench/reproduction.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "cli/ckbench/all_reproductions.h"
#include "cli/common/files.h"
#include "lib/files/emit/schemas.h"
#include "lib/testing/schema_validator.h"

namespace ckplan {
namespace {

Figure Number(FigureUnit unit, int64_t ours, int64_t paper) {
  Figure figure;
  figure.unit = unit;
  figure.ours = ours;
  figure.paper = paper;
  return figure;
}

}  // namespace

TEST_CASE("reproduction: testdata/reproduction.md equals the output of ckbench") {
  CHECK(*ReadWholeFile("testdata/reproduction.md") == ReproductionMarkdown(AllReproductions()));
}

TEST_CASE("reproduction: every difference above 2 % has an explanation") {
  size_t figures = 0;
  for (const Reproduction& reproduction : AllReproductions()) {
    for (const FigureTable& table : reproduction.tables) {
      for (const Figure& figure : table.figures) {
        CAPTURE(reproduction.key);
        CAPTURE(figure.subject);
        CAPTURE(figure.quantity);
        ++figures;
        const bool is_explained = figure.note > 0;
        CHECK((is_explained || !figure.NeedsExplanation()));
        CHECK(figure.note <= static_cast<int32_t>(table.notes.size()));
      }
    }
  }
  CHECK(figures > 150);
}

TEST_CASE("reproduction: Feng's ratios agree within 0.01, and ten of fifteen within 0.0001") {
  const std::vector<Figure>& figures = TableOf("feng", "Table 1").figures;
  REQUIRE(figures.size() == 15);
  int exact = 0;
  for (const Figure& figure : figures) {
    CAPTURE(figure.subject);
    const int64_t away = std::abs(*figure.ours - *figure.paper);
    CHECK(away < 100);
    exact += away <= 1 ? 1 : 0;
  }
  CHECK(exact >= 10);
}

TEST_CASE("reproduction: Hong's checkpoint sets equal the paper's or tie with them") {
  const std::vector<Figure>& figures = TableOf("hong", "Table 2, checkpoint sets").figures;
  REQUIRE(figures.size() == 8);
  for (const Figure& figure : figures) {
    CAPTURE(figure.subject);
    CAPTURE(figure.quantity);
    CHECK(figure.match != SetMatch::kDiffers);
  }
}

TEST_CASE("reproduction: Chen's sublinear plan is sublinear, and the LSTM gains more than 4x") {
  const std::vector<Figure>& depth = TableOf("chen", "Figure 5").figures;
  bool is_sublinear = false;
  for (const Figure& figure : depth) {
    if (figure.quantity == "exponent of the sublinear plan") is_sublinear = *figure.ours < 70;
  }
  CHECK(is_sublinear);
  const FigureTable& lstm = TableOf("chen", "Figure 6");
  CHECK(*RowOf(lstm, "LSTM, 512 steps", "sharing / sublinear plan").ours > 400);
}

TEST_CASE("reproduction: JSON conforms to its schema") {
  const SchemaValidator judge(FindSchema("bench")->text);
  auto json = nlohmann::json::parse(ReproductionJson(AllReproductions()));
  CHECK(judge.Accepts(json));
  json["papers"][0]["tables"][0]["figures"][0].erase("unit");
  CHECK(!judge.Accepts(json));
}

TEST_CASE("reproduction: differences are relative, and for percentages in points") {
  CHECK(DifferenceText(Number(FigureUnit::kMebibytes, 102, 100)) == "+2.0 %");
  CHECK(DifferenceText(Number(FigureUnit::kReduction, -650, -620)) == "-3.0 points");
  CHECK(DifferenceText(Number(FigureUnit::kRatio, 3720, 3720)) == "same");
  CHECK(!Number(FigureUnit::kMebibytes, 102, 100).NeedsExplanation());
  CHECK(Number(FigureUnit::kMebibytes, 103, 100).NeedsExplanation());
  CHECK(Number(FigureUnit::kReduction, -641, -620).NeedsExplanation());
  Figure absent;
  absent.paper = 5;
  CHECK(absent.NeedsExplanation());
}

TEST_CASE("reproduction: a run that did not fit the paper's device must not fit ours") {
  Figure figure = Number(FigureUnit::kMebibytes, 101, 100);
  figure.paper_ran_out = true;
  CHECK(DifferenceText(figure) == "also above");
  CHECK(!figure.NeedsExplanation());
  CHECK(!figure.Difference());
  figure.ours = 100;  // This is all the memory of the device, so it would have fitted.
  CHECK(DifferenceText(figure) == "+0.0 %");
  CHECK(figure.NeedsExplanation());
  figure.ours = 90;
  CHECK(DifferenceText(figure) == "-10.0 %");
  CHECK(figure.NeedsExplanation());
}

TEST_CASE("reproduction: a figure within the paper's limit needs no explanation") {
  Figure figure = Number(FigureUnit::kMilliseconds, 1000, 1000);
  figure.paper_is_limit = true;
  CHECK(DifferenceText(figure) == "within");
  CHECK(!figure.NeedsExplanation());
  CHECK(!figure.Difference());
  figure.ours = 1100;
  CHECK(DifferenceText(figure) == "+10.0 %");
  CHECK(figure.NeedsExplanation());
}

TEST_CASE("reproduction: numbers are rounded to the nearest step") {
  CHECK(RatioSteps(Bytes(1), Bytes(3)) == 3333);
  CHECK(RatioSteps(Bytes(2), Bytes(3)) == 6667);
  CHECK(ReductionSteps(Bytes(1), Bytes(3)) == -667);
  CHECK(ReductionSteps(Bytes(3), Bytes(2)) == 500);
  CHECK(MebibyteSteps(Bytes((int64_t{3} << 19))) == 2);
  CHECK(GigabyteSteps(Bytes(149'999'999)) == 1);
  CHECK(FactorSteps(Bytes(7), Bytes(2)) == 350);
  CHECK(FactorSteps(Cost(200), Cost(300)) == 67);
  CHECK(MillisecondSteps(Cost(1'499'999)) == 1);
  CHECK(MillisecondSteps(Cost(1'500'000)) == 2);
}

}  // namespace ckplan
