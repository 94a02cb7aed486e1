#include <doctest/doctest.h>

#include <string>

#include "cli/ckbench/all_reproductions.h"

namespace ckplan {

TEST_CASE(
    "feng: regular training needs the memory that the paper measured, within 3.2 % for 14 "
    "networks") {
  const FigureTable& table = TableOf("feng", "Table 1, regular");
  REQUIRE(table.figures.size() == 16);
  int near = 0;
  for (const Figure& figure : table.figures) {
    if (figure.quantity != "regular") continue;
    near += std::abs(*figure.Difference()) <= 32 ? 1 : 0;
  }
  CHECK(near == 14);
}

TEST_CASE("feng: VGG11 keeps its convolutions, poolings with their indices, and the image") {
  // Elements of one image: convolutions, with their ReLU in place, make 64 * 224^2 + 128 * 112^2 +
  // 2 * 256 * 56^2 + 2 * 512 * 28^2 + 2 * 512 * 14^2 = 7,426,048. Poolings make 64 * 112^2 + 128 *
  // 56^2 + 256 * 28^2 + 512 * 14^2 + 512 * 7^2 = 1,530,368, and three times that much with indices
  // of 8 bytes. The adaptive pooling makes 25,088, and the image has 150,528. 64 images take
  // 2,976.8 MiB. The linear layers and the gradients at the peak add less than a fiftieth.
  const int64_t mib = int64_t{4} * 64 * (7'426'048 + 3 * 1'530'368 + 25'088 + 150'528) / (1 << 20);
  CHECK(mib == 2976);
  const int64_t ours =
      *RowOf(TableOf("feng", "Table 1, regular"), "VGG11, batch 64", "regular").ours;
  CHECK(ours > mib);
  CHECK(ours < mib * 51 / 50);
}

TEST_CASE("feng: the measured ratio is re-forwarding's memory divided by regular training's") {
  const FigureTable& measured = TableOf("feng", "Table 1, measured");
  const FigureTable& regular = TableOf("feng", "Table 1, regular");
  int with_chen = 0;
  for (const Figure& row : regular.figures) {
    if (row.quantity != "regular") continue;
    CAPTURE(row.subject);
    const int64_t forward = *RowOf(measured, row.subject, "re-forwarding, measured").paper;
    const int64_t ratio = *RowOf(measured, row.subject, "ours / regular, measured").paper;
    CHECK(std::abs(ratio - RatioSteps(Bytes(forward), Bytes(*row.paper))) <= 1);
    const int64_t chen = *RowOf(measured, row.subject, "Chen's, measured").paper;
    CHECK(forward <= chen);
    CHECK(chen < *row.paper);
    ++with_chen;
  }
  CHECK(with_chen == 15);
}

TEST_CASE("feng: ResNet101 has a row for the text's 5,000 MB and one for the table's 3,812") {
  const FigureTable& table = TableOf("feng", "Table 1, regular");
  const Figure& text = RowOf(table, "ResNet101, batch 32", "regular, section 1");
  const Figure& row = RowOf(table, "ResNet101, batch 32", "regular");
  CHECK(text.paper == 5000);
  CHECK(row.paper == 3812);
  CHECK(text.ours == row.ours);
  CHECK(text.note > 0);
}

TEST_CASE("feng: the notes on the VGGs derive the ratio that they stand by") {
  const FigureTable& table = TableOf("feng", "Table 1, theoretical");
  const Figure& vgg = RowOf(table, "VGG11", "ours / regular");
  REQUIRE(vgg.note > 0);
  // VGG11 keeps 4,415,488 of 8,964,608 elements; input and output have 150,528 + 1,000.
  const std::string& note = table.notes[static_cast<size_t>(vgg.note - 1)];
  CHECK(note.find("(4,415,488 + 151,528) / (8,964,608 + 151,528)") != std::string::npos);
  CHECK(vgg.ours == RatioSteps(Bytes(4'415'488 + 151'528), Bytes(8'964'608 + 151'528)));
}

TEST_CASE("feng: modelled times stand beside those of the paper of 2021") {
  const FigureTable& table = TableOf("feng", "Time added to a step, modelled");
  REQUIRE(table.figures.size() == 2 * 15);
  for (size_t i = 0; i < table.figures.size(); i += 2) {
    const Figure& twice = table.figures[i];
    const Figure& plan = table.figures[i + 1];
    CAPTURE(plan.subject);
    CHECK(twice.paper == plan.paper);
    CHECK(*plan.ours > 0);
    CHECK(*plan.ours < *twice.ours);
    CHECK(*twice.ours > 330);  // Backward takes at most twice as long as forward.
  }
  // 519 ms for 388 ms.
  CHECK(RowOf(table, "AlexNet, batch 1024", "feng-acg, modelled").paper == 338);
}

TEST_CASE("feng: measured ratios have rows to be filled in on a GPU") {
  const FigureTable& table = TableOf("feng", "Table 1, measured");
  REQUIRE(table.figures.size() == 3 * 15);
  for (const Figure& figure : table.figures) {
    CHECK(!figure.ours);
    CHECK(figure.paper.has_value());
    CHECK(figure.note > 0);
    CHECK(DifferenceText(figure).empty());
  }
}

}  // namespace ckplan
