#include "lib/problem/schedule/interval_placement.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/rng.h"
#include "lib/problem/schedule/arena.h"
#include "lib/problem/schedule/timeline.h"

namespace ckplan {
namespace {

bool LiveTogether(const LiveInterval& a, const LiveInterval& b) {
  return std::max(a.lower, b.lower) < std::min(a.upper, b.upper);
}

// Compares every pair of intervals and shares no code with the search.
bool IsValid(const std::vector<LiveInterval>& intervals, const std::vector<int64_t>& offsets,
             int64_t capacity) {
  if (offsets.size() != intervals.size()) return false;
  for (size_t a = 0; a < intervals.size(); ++a) {
    const bool takes_room = intervals[a].lower < intervals[a].upper && intervals[a].size > 0;
    if (offsets[a] < 0 || (takes_room && offsets[a] + intervals[a].size > capacity)) return false;
    for (size_t b = 0; b < a; ++b) {
      const int64_t bottom = std::max(offsets[a], offsets[b]);
      const int64_t top = std::min(offsets[a] + intervals[a].size, offsets[b] + intervals[b].size);
      if (LiveTogether(intervals[a], intervals[b]) && bottom < top) return false;
    }
  }
  return true;
}

// Returns whether the intervals without offsets fit beside those with offsets, by trying every
// offset.
bool FitsByTrial(const std::vector<LiveInterval>& intervals, int64_t capacity,
                 std::vector<int64_t>* offsets) {
  const size_t next = offsets->size();
  if (next == intervals.size()) return true;
  for (int64_t offset = 0; offset + intervals[next].size <= capacity; ++offset) {
    bool is_free = true;
    for (size_t i = 0; i < next && is_free; ++i) {
      is_free = !LiveTogether(intervals[i], intervals[next]) ||
                (*offsets)[i] >= offset + intervals[next].size ||
                (*offsets)[i] + intervals[i].size <= offset;
    }
    if (!is_free) continue;
    offsets->push_back(offset);
    if (FitsByTrial(intervals, capacity, offsets)) return true;
    offsets->pop_back();
  }
  return false;
}

// Takes `total` bytes at all times, so it may be impossible to place: at each moment some intervals
// end and others with the same total begin. There are at most `count` intervals in order of time,
// apart from the last group.
std::vector<LiveInterval> FullIntervals(Rng& rng, size_t count, int64_t total) {
  constexpr int64_t kOpen = 1000;
  std::vector<LiveInterval> intervals;
  int64_t free = total;
  for (int64_t time = 0; intervals.size() < count; ++time) {
    for (LiveInterval& interval : intervals) {
      if (interval.upper < kOpen || !rng.Chance(40)) continue;
      interval.upper = time;
      free += interval.size;
    }
    while (free > 0) {
      intervals.push_back({time, kOpen, rng.Between(1, std::min<int64_t>(free, 3))});
      free -= intervals.back().size;
    }
  }
  return intervals;
}

// Cuts a slab into `count` pieces, which together fill it without gaps.
std::vector<LiveInterval> CutSlab(Rng& rng, size_t count, int64_t times, int64_t capacity) {
  std::vector<LiveInterval> pieces = {{0, times, capacity}};
  while (pieces.size() < count) {
    LiveInterval& piece =
        pieces[static_cast<size_t>(rng.Between(0, static_cast<int64_t>(pieces.size()) - 1))];
    LiveInterval rest = piece;
    if (rng.Chance(50) && piece.size > 1) {
      piece.size = rng.Between(1, piece.size - 1);
      rest.size -= piece.size;
    } else if (piece.upper - piece.lower > 1) {
      piece.upper = rest.lower = rng.Between(piece.lower + 1, piece.upper - 1);
    } else {
      continue;
    }
    pieces.push_back(rest);
  }
  return pieces;
}

std::vector<LiveInterval> IntervalsOf(const Timeline& timeline) {
  std::vector<LiveInterval> intervals;
  for (const Buffer& b : timeline.buffers) intervals.push_back({b.begin, b.end, b.bytes.count()});
  return intervals;
}

// Each tick is one allocation or one release, as in the timelines of schedules.
Timeline RandomTimeline(Rng& rng, int64_t count) {
  std::vector<int64_t> ticks(static_cast<size_t>(2 * count));
  std::iota(ticks.begin(), ticks.end(), 0);
  Timeline timeline;
  for (int64_t left = 2 * count; left > 0;) {
    Buffer& buffer = timeline.buffers.emplace_back();
    for (int64_t* tick : {&buffer.begin, &buffer.end}) {
      std::swap(ticks[static_cast<size_t>(rng.Between(0, left - 1))], ticks.back());
      *tick = ticks.back();
      ticks.pop_back();
      --left;
    }
    if (buffer.end < buffer.begin) std::swap(buffer.begin, buffer.end);
    buffer.bytes = Bytes(rng.Between(1, 30));
  }
  timeline.peak = Bytes(MaxLiveTotal(IntervalsOf(timeline)));
  return timeline;
}

std::vector<LiveInterval> ReadBenchmark(const std::string& name) {
  std::ifstream file("testdata/arena/" + name + ".csv");
  REQUIRE_MESSAGE(file.good(), name);
  std::string line;
  std::getline(file, line);
  REQUIRE(line == "id,lower,upper,size");
  std::vector<LiveInterval> intervals;
  int64_t id = 0;
  char comma = ',';
  LiveInterval interval;
  while (file >> id >> comma >> interval.lower >> comma >> interval.upper >> comma >>
         interval.size) {
    intervals.push_back(interval);
  }
  return intervals;
}

TEST_CASE("interval placement: the least capacity is the one that trying all offsets finds") {
  int above_bound = 0;
  for (uint64_t seed = 1; seed <= 2000; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    const auto intervals = FullIntervals(rng, 20, rng.Between(4, 10));
    int64_t least = MaxLiveTotal(intervals);
    std::vector<int64_t> offsets;
    while (!FitsByTrial(intervals, least, &offsets)) ++least;
    const IntervalPlacement placement = PlaceWithin(intervals, least);
    REQUIRE(placement.outcome == PlacementOutcome::kPlaced);
    CHECK(IsValid(intervals, placement.offsets, least));
    CHECK(PlaceWithin(intervals, least - 1).outcome == PlacementOutcome::kImpossible);
    if (MaxLiveTotal(intervals) < least) ++above_bound;
  }
  CHECK(above_bound >= 5);  // Otherwise a bound from the total alone would pass the test.
}

TEST_CASE("interval placement: slabs that were cut are put together again") {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    const auto pieces = CutSlab(rng, 24, 40, 100);
    const IntervalPlacement placement = PlaceWithin(pieces, 100);
    REQUIRE(placement.outcome == PlacementOutcome::kPlaced);
    CHECK(IsValid(pieces, placement.offsets, 100));
  }
}

TEST_CASE("interval placement: minimalloc's benchmarks reach their capacity") {
  for (const std::string name : {"B", "C", "D", "F"}) {
    CAPTURE(name);
    const auto intervals = ReadBenchmark(name);
    const IntervalPlacement placement = PlaceWithin(intervals, 1'048'576, {200'000, 0});
    REQUIRE(placement.outcome == PlacementOutcome::kPlaced);
    CHECK(IsValid(intervals, placement.offsets, 1'048'576));
  }
}

TEST_CASE(
    "interval placement: colours are as few as intervals that live together, if equally large") {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    std::vector<LiveInterval> intervals = IntervalsOf(RandomTimeline(rng, rng.Between(1, 30)));
    CHECK(ColoredTotal(intervals) >= MaxLiveTotal(intervals));
    std::sort(intervals.begin(), intervals.end(),
              [](const LiveInterval& a, const LiveInterval& b) { return a.lower < b.lower; });
    for (LiveInterval& interval : intervals) interval.size = 1;
    CHECK(ColoredTotal(intervals) == MaxLiveTotal(intervals));
  }
  // The two small ones live in a row, and have one colour beside that of the large one.
  CHECK(ColoredTotal(std::vector<LiveInterval>{{0, 4, 5}, {0, 2, 3}, {2, 4, 2}, {3, 3, 9}}) == 8);
}

TEST_CASE("interval placement: an empty interval fits anywhere, and so does an empty list") {
  CHECK(PlaceWithin({}, 0).outcome == PlacementOutcome::kPlaced);
  const std::vector<LiveInterval> intervals = {{0, 5, 0}, {3, 3, 9}, {0, 5, 4}, {5, 6, 4}};
  const IntervalPlacement placement = PlaceWithin(intervals, 4);
  REQUIRE(placement.outcome == PlacementOutcome::kPlaced);
  CHECK(IsValid(intervals, placement.offsets, 4));
  CHECK(PlaceWithin(intervals, 3).outcome == PlacementOutcome::kImpossible);
}

TEST_CASE("interval placement: the limit of nodes holds, and the same seed gives the same answer") {
  const auto intervals = ReadBenchmark("A");
  const IntervalPlacement few = PlaceWithin(intervals, 1'048'576, {100, 0});
  CHECK(few.outcome == PlacementOutcome::kOutOfNodes);
  CHECK(few.nodes == 100);
  const auto once = PlaceWithin(ReadBenchmark("D"), 1'048'576, {200'000, 7});
  const auto again = PlaceWithin(ReadBenchmark("D"), 1'048'576, {200'000, 7});
  CHECK(once.offsets == again.offsets);
  CHECK(once.nodes == again.nodes);
}

TEST_CASE("arena: a tight placement is valid, and never larger than the portfolio's") {
  int gains = 0;
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    const Timeline timeline = RandomTimeline(rng, rng.Between(1, 25));
    const std::vector<LiveInterval> intervals = IntervalsOf(timeline);
    const Arena portfolio = PlaceBuffers(timeline);
    const Arena tight = PlaceTightly(timeline);
    std::vector<int64_t> offsets;
    for (const Bytes offset : tight.offsets) offsets.push_back(offset.count());
    CHECK(IsValid(intervals, offsets, tight.bytes.count()));
    CHECK(tight.bytes <= portfolio.bytes);
    if (portfolio.bytes == timeline.peak) CHECK(tight.offsets == portfolio.offsets);
    if (tight.bytes < portfolio.bytes) ++gains;
  }
  CHECK(gains > 0);
}

}  // namespace
}  // namespace ckplan
