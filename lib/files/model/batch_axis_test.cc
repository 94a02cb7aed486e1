#include "lib/files/model/batch_axis.h"

#include <doctest/doctest.h>

namespace ckplan {
namespace {

using Place = std::optional<BatchPlace>;

TEST_CASE("batch axis: a batch above one is where its samples are as far apart as before") {
  CHECK(PlaceAfterReshape({8, 136, 28, 28}, {0, 1}, {8, 4, 34, 28, 28}, 8) == Place({0, 1}));
  CHECK(PlaceAfterReshape({8, 128, 768}, {0, 1}, {1024, 768}, 8) == Place({0, 128}));
  CHECK(PlaceAfterReshape({1024, 768}, {0, 128}, {1024, 12, 64}, 8) == Place({0, 128}));
  CHECK(PlaceAfterReshape({1024, 768}, {0, 128}, {8, 128, 768}, 8) == Place({0, 1}));
  CHECK(PlaceAfterReshape({50, 8, 768}, {1, 1}, {50, 96, 64}, 8) == Place({1, 12}));
  CHECK(PlaceAfterReshape({8, 128}, {0, 1}, {1, 8, 128}, 8) == Place({1, 1}));
  // The batch would be a part of two axes.
  CHECK(PlaceAfterReshape({8, 128, 768}, {0, 1}, {4, 256, 768}, 8) == Place());
}

TEST_CASE("batch axis: a batch of one is the axis of one with the same distance of samples") {
  CHECK(PlaceAfterReshape({1, 136, 28, 28}, {0, 1}, {1, 4, 34, 28, 28}, 1) == Place({0, 1}));
  CHECK(PlaceAfterReshape({50, 1, 768}, {1, 1}, {50, 1, 12, 64}, 1) == Place({1, 1}));
  CHECK(PlaceAfterReshape({50, 768}, {0, 1}, {50, 1, 768}, 1) == Place({1, 1}));
  // Here the samples of the first axis are whole sequences, so the axis of one is another.
  CHECK(PlaceAfterReshape({50, 768}, {0, 50}, {50, 1, 768}, 1) == Place({0, 50}));
  // Among several, it is the one in the same place, or the first one.
  CHECK(PlaceAfterReshape({1, 1, 768}, {1, 1}, {1, 1, 12, 64}, 1) == Place({1, 1}));
  CHECK(PlaceAfterReshape({1, 768}, {0, 1}, {1, 1, 768}, 1) == Place({0, 1}));
  CHECK(PlaceAfterReshape({5, 7, 1, 4}, {2, 1}, {35, 1, 1, 4}, 1) == Place({2, 1}));
  CHECK(PlaceAfterReshape({5, 7, 2, 1, 4}, {3, 1}, {70, 1, 1, 4}, 1) == Place());
}

TEST_CASE("batch axis: a batch of one between two axes belongs to the one that changes") {
  CHECK(PlaceAfterReshape({1, 128, 768}, {0, 1}, {128, 768}, 1) == Place({0, 128}));
  CHECK(PlaceAfterReshape({50, 1, 768}, {1, 1}, {50, 12, 64}, 1) == Place({1, 12}));
  CHECK(PlaceAfterReshape({50, 12, 64}, {1, 12}, {50, 768}, 1) == Place({0, 1}));
  CHECK(PlaceAfterReshape({50, 1, 768}, {1, 1}, {50, 768}, 1) == Place({0, 1}));
  CHECK(PlaceAfterReshape({5, 10, 1, 12, 64}, {2, 1}, {50, 12, 64}, 1) == Place({0, 1}));
  // Both axes are as they were: it could have joined either.
  CHECK(PlaceAfterReshape({50, 1, 12, 64}, {1, 1}, {50, 12, 64}, 1) == Place());
}

TEST_CASE("batch axis: an axis is asked whether it may hold the batch") {
  CHECK(PlaceOnAxis({50, 1, 12, 64}, {1, 1}, {50, 12, 64}, 0, 1) == Place({0, 1}));
  CHECK(PlaceOnAxis({50, 1, 12, 64}, {1, 1}, {50, 12, 64}, 1, 1) == Place({1, 12}));
  CHECK(PlaceOnAxis({50, 1, 12, 64}, {1, 1}, {50, 12, 64}, 2, 1) == Place());
}

}  // namespace
}  // namespace ckplan
