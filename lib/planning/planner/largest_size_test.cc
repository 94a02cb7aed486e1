#include "lib/planning/planner/largest_size.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "lib/base/rng.h"

namespace ckplan {
namespace {

constexpr int64_t kLargest = 100'000;

// Values that rise from 0: along a line or a bent curve, in steps, and to infinity beyond some
// count.
struct Curve {
  explicit Curve(Rng* rng)
      : edge(rng->Between(1, kLargest)), bend(rng->Between(1, 3)), step(rng->Between(1, 50)) {}

  double At(int64_t count) const {
    if (count > 2 * edge) return std::numeric_limits<double>::infinity();
    const auto rounded = static_cast<double>(count > edge ? count : count / step * step);
    const double part = rounded / (static_cast<double>(edge) + 0.5);
    return bend == 1 ? part : bend == 2 ? part * part : std::sqrt(part);
  }

  int64_t edge;
  int64_t bend;
  int64_t step;
};

}  // namespace

TEST_CASE("find edge: the count fits, the next one does not, and few are measured") {
  Rng rng(1);
  int measured = 0;
  constexpr int kCurves = 500;
  for (int i = 0; i < kCurves; ++i) {
    CAPTURE(i);
    const Curve curve(&rng);
    SizeSearch search;
    search.measure = [&](int64_t count) -> Result<double> {
      ++measured;
      return curve.At(count);
    };
    if (rng.Chance(50)) search.first_guess = rng.Between(1, 2 * kLargest);
    const LargestSize edge = FindLargestSize({}, search).value();
    CHECK(edge.fits.count == curve.edge);
    REQUIRE(edge.does_not.has_value());
    CHECK(edge.does_not->count == curve.edge + 1);
  }
  CHECK(measured < 20 * kCurves);
}

TEST_CASE("find edge: what lies within reach is left out, and a reach too far misleads once") {
  constexpr int64_t kEdge = 5'000;
  int measured = 0;
  SizeSearch search;
  search.first_guess = 1'000;
  search.measure = [&](int64_t count) -> Result<double> {
    ++measured;
    return count > kEdge ? 2.0 : 0.9;
  };
  CHECK(FindLargestSize({}, search)->fits.count == kEdge);
  const int without = std::exchange(measured, 0);
  for (const int64_t too_far : {0, 1, 10'000}) {
    CAPTURE(too_far);
    measured = 0;
    search.reach = [&](int64_t fits) -> Result<int64_t> {
      return fits / 1'000 * 1'000 + 1'000 + too_far;
    };
    const LargestSize edge = FindLargestSize({}, search).value();
    CHECK(edge.fits.count == kEdge);
    CHECK(edge.does_not->count == kEdge + 1);
    CHECK(measured <= (too_far == 0 ? without / 2 : without));
  }
}

TEST_CASE("find edge: with a tolerance it suffices to come near to what is allowed") {
  Rng rng(2);
  int measured[2] = {0, 0};
  for (int i = 0; i < 100; ++i) {
    CAPTURE(i);
    const Curve curve(&rng);
    SizeSearch search;
    for (const bool is_tolerant : {false, true}) {
      search.tolerance = is_tolerant ? 0.02 : 0;
      search.measure = [&](int64_t count) -> Result<double> {
        ++measured[is_tolerant];
        return curve.At(count);
      };
      const LargestSize edge = FindLargestSize({}, search).value();
      const bool is_near = is_tolerant && edge.fits.value >= 0.98;
      CHECK((edge.fits.count == curve.edge || is_near));
      CHECK(edge.fits.value <= 1);
    }
  }
  CHECK(measured[true] < measured[false]);
}

TEST_CASE("find edge: where measures are noisy, the count fits and the next one does not") {
  constexpr double kNoise = 0.02;
  constexpr int kSearches = 200;
  size_t measured = 0;
  for (int i = 0; i < kSearches; ++i) {
    CAPTURE(i);
    Rng rng(static_cast<uint64_t>(i));
    const int64_t middle = rng.Between(100, 5'000);
    std::map<int64_t, double> values;
    SizeSearch search;
    search.measure = [&](int64_t count) -> Result<double> {
      const double noise = kNoise * static_cast<double>(rng.Between(-100, 100)) / 100;
      return values[count] = static_cast<double>(count) / static_cast<double>(middle) + noise;
    };
    search.reach = [](int64_t fits) -> Result<int64_t> { return fits; };
    search.first_guess = middle * rng.Between(100, 120) / 100;
    const LargestSize edge = FindLargestSize({}, search).value();
    CHECK(values.at(edge.fits.count) <= 1);
    CHECK(values.at(edge.fits.count + 1) > 1);
    CHECK(edge.fits.count >= middle - middle / 20);
    measured += values.size();
  }
  CHECK(measured < 8 * kSearches);
}

TEST_CASE("find edge: large counts are sought in parts, however many there are") {
  constexpr int64_t kParts = 512;
  for (const int64_t edge : {100, 500, 1'023, 5'000, 2'000'000, 700'000'000}) {
    CAPTURE(edge);
    int measured = 0;
    SizeSearch search;
    search.parts = kParts;
    search.first_guess = edge + edge / 50;
    search.reach = [](int64_t fits) -> Result<int64_t> { return fits; };
    search.measure = [&](int64_t count) -> Result<double> {
      ++measured;
      return static_cast<double>(count) / static_cast<double>(edge);
    };
    const LargestSize found = FindLargestSize({}, search).value();
    REQUIRE(found.does_not.has_value());
    CHECK(found.fits.count <= edge);
    CHECK(found.does_not->count > edge);
    CHECK(found.does_not->count - found.fits.count <= std::max<int64_t>(1, edge / kParts));
    CHECK(measured <= 20);
  }
}

TEST_CASE(
    "find edge: counts beyond the edge are tried, and the search goes on from one that fits") {
  // 101 to 103 do not fit, 104 to 110 do, and nothing does beyond.
  int measured = 0;
  SizeSearch search;
  search.measure = [&](int64_t count) -> Result<double> {
    ++measured;
    if (count <= 100) return static_cast<double>(count) / 100.5;
    return count > 103 && count <= 110 ? 0.999 : 1 + static_cast<double>(count) / 1'000;
  };
  const LargestSize first = FindLargestSize({}, search).value();
  CHECK(first.fits.count == 100);
  CHECK_FALSE(first.is_last);
  search.look_beyond = 32;
  measured = 0;
  for (const int64_t most : {112, 130, 5'000}) {
    CAPTURE(most);
    search.most = most;
    const LargestSize edge = FindLargestSize({}, search).value();
    CHECK(edge.fits.count == 110);
    REQUIRE(edge.does_not.has_value());
    CHECK(edge.does_not->count == 111);
    CHECK(edge.is_last == (most < 5'000));
  }
  CHECK(measured < 200);
  search.most = 102;  // Counts above it are not tried.
  CHECK(FindLargestSize({}, search)->fits.count == 100);
}

TEST_CASE("find edge: all counts may fit, and errors end the search") {
  SizeSearch search;
  search.measure = [](int64_t) -> Result<double> { return 0.5; };
  const LargestSize all = FindLargestSize({}, search).value();
  CHECK(all.fits.count == kMaxCount);
  CHECK_FALSE(all.does_not.has_value());
  search.measure = [](int64_t) -> Result<double> { return MakeError(ErrorCode::kTimeout, "stop"); };
  CHECK(FindLargestSize({}, search).error().code == ErrorCode::kTimeout);
}

}  // namespace ckplan
