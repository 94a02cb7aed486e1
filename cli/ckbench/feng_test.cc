#include <doctest/doctest.h>

#include <cstdlib>

#include "cli/ckbench/all_reproductions.h"

namespace ckplan {

TEST_CASE("feng: regular training needs what the paper measured, of 14 networks within 3.2 %") {
  const FigureTable& table = TableOf("feng", "Table 1, regular");
  REQUIRE(table.figures.size() == 15);
  int near = 0;
  for (const Figure& figure : table.figures) {
    near += std::abs(*figure.Difference()) <= 32 ? 1 : 0;
  }
  CHECK(near == 14);
}

TEST_CASE("feng: VGG11 keeps its convolutions, poolings with their indices, and the image") {
  // Elements of an image. Convolutions, whose ReLU is done in place: 64 * 224^2 + 128 * 112^2 +
  // 2 * 256 * 56^2 + 2 * 512 * 28^2 + 2 * 512 * 14^2 = 7,426,048. Poolings: 64 * 112^2 +
  // 128 * 56^2 + 256 * 28^2 + 512 * 14^2 + 512 * 7^2 = 1,530,368, with indices of 8 bytes thrice as
  // much; the adaptive pooling 25,088; the image 150,528. Of 64 images 2,976.8 MiB. What the linear
  // layers keep and the gradients at the peak are less than a fiftieth.
  const int64_t mib = int64_t{4} * 64 * (7'426'048 + 3 * 1'530'368 + 25'088 + 150'528) / (1 << 20);
  CHECK(mib == 2976);
  const int64_t ours =
      *RowOf(TableOf("feng", "Table 1, regular"), "VGG11, batch 64", "regular").ours;
  CHECK(ours > mib);
  CHECK(ours < mib * 51 / 50);
}

TEST_CASE("feng: measured ratios wait for a GPU") {
  const FigureTable& table = TableOf("feng", "Table 1, measured");
  REQUIRE(table.figures.size() == 15);
  for (const Figure& figure : table.figures) {
    CHECK(!figure.ours);
    CHECK(figure.paper.has_value());
    CHECK(figure.note > 0);
    CHECK(DifferenceText(figure).empty());
  }
}

}  // namespace ckplan
