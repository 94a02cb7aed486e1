#include "lib/problem/schedule/arena.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <queue>
#include <utility>
#include <vector>

#include "lib/base/stop.h"
#include "lib/problem/schedule/interval_placement.h"

namespace ckplan {
namespace {

constexpr int64_t kInfinity = std::numeric_limits<int64_t>::max();
constexpr int32_t kNone = -1;
constexpr int64_t kNoSegment = -1;

// Finds the leftmost position at or after a start whose key is at most a limit. Keys can be erased.
class LeftmostFinder {
 public:
  explicit LeftmostFinder(const std::vector<int64_t>& keys) {
    while (leaves_ < keys.size()) leaves_ *= 2;
    min_kept_.assign(2 * leaves_, kInfinity);
    std::copy(keys.begin(), keys.end(), min_kept_.begin() + static_cast<std::ptrdiff_t>(leaves_));
    for (size_t i = leaves_; i-- > 1;)
      min_kept_[i] = std::min(min_kept_[2 * i], min_kept_[2 * i + 1]);
  }

  void Erase(size_t position) {
    size_t i = position + leaves_;
    min_kept_[i] = kInfinity;
    for (i /= 2; i >= 1; i /= 2) min_kept_[i] = std::min(min_kept_[2 * i], min_kept_[2 * i + 1]);
  }

  // The smallest position >= start with key <= limit.
  std::optional<size_t> Find(size_t start, int64_t limit) const {
    if (start >= leaves_) return std::nullopt;
    size_t i = start + leaves_;
    while (min_kept_[i] > limit) {
      // Climbs while this is a right child, since its parent has no keys further right.
      while (i % 2 == 1) i /= 2;
      if (i == 0) return std::nullopt;
      ++i;
    }
    while (i < leaves_) i = min_kept_[2 * i] <= limit ? 2 * i : 2 * i + 1;
    return i - leaves_;
  }

 private:
  size_t leaves_ = 1;
  std::vector<int64_t> min_kept_;
};

// How to choose between the buffers that fit into a valley.
enum class SkylineRule { kEarliest, kLatest, kLonger, kLarger, kShorter };
constexpr SkylineRule kSkylineRules[] = {SkylineRule::kLonger, SkylineRule::kEarliest,
                                         SkylineRule::kLatest, SkylineRule::kLarger,
                                         SkylineRule::kShorter};

class SkylinePacker {
 public:
  SkylinePacker(const std::vector<Buffer>& buffers, SkylineRule rule)
      : buffers_(buffers),
        rule_(rule),
        by_begin_(SortBuffers([&](size_t b) { return buffers[b].begin; })),
        by_end_(SortBuffers([&](size_t b) { return -buffers[b].end; })),
        ends_by_begin_(Keys(by_begin_, [&](size_t b) { return buffers[b].end; })),
        begins_by_end_(Keys(by_end_, [&](size_t b) { return -buffers[b].begin; })) {}

  // Returns nothing as soon as the slab reaches `limit`.
  std::optional<Arena> Pack(Bytes limit) && {
    Arena arena;
    arena.offsets.resize(buffers_.size());
    const int64_t last_tick = LastTick();
    skyline_.resize(static_cast<size_t>(last_tick));
    SetSegment(0, {last_tick, 0, kNoSegment});
    for (size_t left = buffers_.size(); left > 0;) {
      PollStop();
      const int64_t begin = FindLowestValley();
      const Segment valley = At(begin);
      const int32_t fit = FindFit(begin, valley.end);
      if (fit == kNone) {
        RaiseFloor(begin, valley);
        continue;
      }
      const Buffer& buffer = buffers_[static_cast<size_t>(fit)];
      arena.offsets[static_cast<size_t>(fit)] = Bytes(valley.height);
      const int64_t top = valley.height + buffer.bytes.count();
      if (top >= limit.count()) return std::nullopt;
      arena.bytes = std::max(arena.bytes, Bytes(top));
      Split(begin, valley, buffer, top);
      Take(static_cast<size_t>(fit));
      --left;
    }
    return arena;
  }

 private:
  struct Segment {
    int64_t end = 0;
    int64_t height = kNoSegment;
    int64_t left = kNoSegment;  // The begin of the previous segment, or kNoSegment.
  };

  template <typename Key>
  std::vector<size_t> SortBuffers(Key key) const {
    std::vector<size_t> order(buffers_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return key(a) < key(b); });
    return order;
  }
  template <typename Key>
  static std::vector<int64_t> Keys(const std::vector<size_t>& order, Key key) {
    std::vector<int64_t> keys;
    for (const size_t b : order) keys.push_back(key(b));
    return keys;
  }

  int64_t LastTick() const {
    int64_t last = 1;
    for (const Buffer& buffer : buffers_) last = std::max(last, buffer.end);
    return last;
  }

  Segment& At(int64_t begin) { return skyline_[static_cast<size_t>(begin)]; }

  // Stores the segment and updates the next segment's link.
  void SetSegment(int64_t begin, const Segment& segment) {
    At(begin) = segment;
    if (static_cast<size_t>(segment.end) < skyline_.size()) At(segment.end).left = begin;
    valleys_.push({segment.height, begin});
  }

  int64_t FindLowestValley() {
    while (At(valleys_.top().second).height != valleys_.top().first) valleys_.pop();
    return valleys_.top().second;
  }

  // Considers two buffers within [begin, end), the first to begin and the last to end, and returns
  // the one that the rule prefers, or kNone if no buffer fits.
  int32_t FindFit(int64_t begin, int64_t end) {
    const auto earliest = ends_by_begin_.Find(Position(by_begin_, begin, true), end);
    if (!earliest) return kNone;
    const size_t a = by_begin_[*earliest];
    if (buffers_[a].begin >= end) return kNone;
    const auto latest = begins_by_end_.Find(Position(by_end_, end, false), -begin);
    const size_t b = latest ? by_end_[*latest] : a;
    return static_cast<int32_t>(Prefer(a, b));
  }

  size_t Position(const std::vector<size_t>& order, int64_t tick, bool ascending) const {
    const auto it = std::partition_point(order.begin(), order.end(), [&](size_t b) {
      return ascending ? buffers_[b].begin < tick : buffers_[b].end > tick;
    });
    return static_cast<size_t>(it - order.begin());
  }

  size_t Prefer(size_t earliest, size_t latest) const {
    const auto length = [&](size_t b) { return buffers_[b].end - buffers_[b].begin; };
    switch (rule_) {
      case SkylineRule::kEarliest:
        return earliest;
      case SkylineRule::kLatest:
        return latest;
      case SkylineRule::kLonger:
        return length(latest) > length(earliest) ? latest : earliest;
      case SkylineRule::kShorter:
        return length(latest) < length(earliest) ? latest : earliest;
      case SkylineRule::kLarger:
        return buffers_[latest].bytes > buffers_[earliest].bytes ? latest : earliest;
    }
    return earliest;
  }

  void Split(int64_t begin, const Segment& valley, const Buffer& buffer, int64_t top) {
    int64_t left = valley.left;
    if (begin < buffer.begin) {
      SetSegment(begin, {buffer.begin, valley.height, left});
      left = begin;
    }
    SetSegment(buffer.begin, {buffer.end, top, left});
    if (buffer.end < valley.end) {
      SetSegment(buffer.end, {valley.end, valley.height, buffer.begin});
    }
    MergeAround(buffer.begin);
  }

  // Raises a valley that no buffer fits into to its lower wall, and joins the two.
  void RaiseFloor(int64_t begin, const Segment& valley) {
    int64_t wall = kInfinity;
    if (valley.left != kNoSegment) wall = At(valley.left).height;
    if (HasSegment(valley.end)) wall = std::min(wall, At(valley.end).height);
    CKPLAN_CHECK(wall != kInfinity, "every unplaced buffer fits into a valley over all ticks");
    SetSegment(begin, {valley.end, wall, valley.left});
    MergeAround(begin);
  }

  bool HasSegment(int64_t begin) const { return static_cast<size_t>(begin) < skyline_.size(); }

  // Joins the segment at `begin` with its neighbours of the same height.
  void MergeAround(int64_t begin) {
    const int64_t left = At(begin).left;
    if (left != kNoSegment && At(left).height == At(begin).height) {
      JoinWithNext(left);
      begin = left;
    }
    if (HasSegment(At(begin).end) && At(At(begin).end).height == At(begin).height) {
      JoinWithNext(begin);
    }
  }

  void JoinWithNext(int64_t begin) {
    Segment& next = At(At(begin).end);
    const Segment joined{next.end, At(begin).height, At(begin).left};
    next.height = kNoSegment;
    SetSegment(begin, joined);
  }

  void Take(size_t buffer) {
    ends_by_begin_.Erase(Position(by_begin_, buffers_[buffer].begin, true));
    begins_by_end_.Erase(Position(by_end_, buffers_[buffer].end, false));
  }

  const std::vector<Buffer>& buffers_;
  const SkylineRule rule_;
  const std::vector<size_t> by_begin_;  // Ticks are unique, and so are positions.
  const std::vector<size_t> by_end_;    // Latest end first.
  LeftmostFinder ends_by_begin_;
  LeftmostFinder begins_by_end_;
  std::vector<Segment> skyline_;  // By begin; the height is kNoSegment if no segment begins there.
  // (height, begin), lowest first. Stale entries, whose segment has changed, are skipped.
  std::priority_queue<std::pair<int64_t, int64_t>, std::vector<std::pair<int64_t, int64_t>>,
                      std::greater<>>
      valleys_;
};

// First-fit: places each buffer, in the given order, in the lowest gap between the placed buffers
// that live at the same time. Takes O(n^2), so it is only for small problems.
Arena FirstFit(const std::vector<Buffer>& buffers, const std::vector<size_t>& order) {
  Arena arena;
  arena.offsets.resize(buffers.size());
  std::vector<size_t> placed;  // By offset.
  for (const size_t b : order) {
    PollStop();
    int64_t offset = 0;
    for (const size_t p : placed) {
      if (buffers[p].end <= buffers[b].begin || buffers[b].end <= buffers[p].begin) continue;
      const int64_t bottom = arena.offsets[p].count();
      if (bottom >= offset + buffers[b].bytes.count()) break;
      offset = std::max(offset, bottom + buffers[p].bytes.count());
    }
    const Bytes top = Bytes(offset) + buffers[b].bytes;
    arena.offsets[b] = Bytes(offset);
    arena.bytes = std::max(arena.bytes, top);
    const auto at =
        std::upper_bound(placed.begin(), placed.end(), offset,
                         [&](int64_t o, size_t p) { return o < arena.offsets[p].count(); });
    placed.insert(at, b);
  }
  return arena;
}

// Moves the buffers that end above the lower bound to the front of the order, so that they are
// placed earlier. The others keep their order.
std::vector<size_t> PromoteHighBuffers(const std::vector<Buffer>& buffers, const Arena& arena,
                                       Bytes lower_bound, std::vector<size_t> order) {
  std::stable_partition(order.begin(), order.end(), [&](size_t b) {
    return arena.offsets[b] + buffers[b].bytes > lower_bound;
  });
  return order;
}

// Returns the orders largest first, longest first and largest area first.
std::vector<std::vector<size_t>> FirstFitOrders(const std::vector<Buffer>& buffers) {
  const auto length = [&](size_t b) { return buffers[b].end - buffers[b].begin; };
  const auto bytes = [&](size_t b) { return buffers[b].bytes.count(); };
  const auto area = [&](size_t b) {
    return static_cast<double>(length(b)) * static_cast<double>(bytes(b));
  };
  std::vector<size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::vector<std::vector<size_t>> orders(3, order);
  const auto sort_by = [&](std::vector<size_t>* o, auto key) {
    std::stable_sort(o->begin(), o->end(), [&](size_t a, size_t b) { return key(a) > key(b); });
  };
  sort_by(&orders[0], bytes);
  sort_by(&orders[1], length);
  sort_by(&orders[2], area);
  return orders;
}

constexpr size_t kMaxForFirstFit = 8'000;  // Takes up to a fifth of a second.
// Limits the first-fit work for promotions, in buffers squared, to about the same time.
constexpr size_t kPromotionWork = 4 * kMaxForFirstFit * kMaxForFirstFit;
constexpr size_t kMaxPromotions = 200;
constexpr size_t kManyBuffers = 100'000;

// Limits the search for a smaller slab to half a second, as a node costs about a pass over all
// buffers.
constexpr int64_t kSearchWork = 60'000'000;
// The number of sizes tried between the lower bound and the best slab so far.
constexpr int kBisections = 5;

std::vector<LiveInterval> IntervalsOf(const std::vector<Buffer>& buffers) {
  std::vector<LiveInterval> intervals;
  intervals.reserve(buffers.size());
  for (const Buffer& b : buffers) intervals.push_back({b.begin, b.end, b.bytes.count()});
  return intervals;
}

std::optional<Arena> Search(const std::vector<LiveInterval>& intervals, int64_t capacity,
                            int64_t max_nodes) {
  const IntervalPlacement placement = PlaceWithin(intervals, capacity, {max_nodes, 0});
  if (placement.outcome != PlacementOutcome::kPlaced) return std::nullopt;
  Arena arena;
  for (size_t i = 0; i < intervals.size(); ++i) {
    arena.offsets.emplace_back(placement.offsets[i]);
    arena.bytes = std::max(arena.bytes, Bytes(placement.offsets[i] + intervals[i].size));
  }
  return arena;
}

}  // namespace

Arena PlaceBuffers(const Timeline& timeline) {
  const std::vector<Buffer>& buffers = timeline.buffers;
  Arena best{Bytes::Max(), {}};
  // With very many buffers, saving the last 0.2 % would take seconds.
  const Bytes good_enough(timeline.peak.count() +
                          (buffers.size() > kManyBuffers ? timeline.peak.count() / 500 : 0));
  const auto improve = [&](std::optional<Arena> arena) {
    if (arena) best = std::move(*arena);
    return best.bytes <= good_enough;
  };
  for (const SkylineRule rule : kSkylineRules) {
    if (improve(SkylinePacker(buffers, rule).Pack(best.bytes))) return best;
  }
  if (buffers.empty() || buffers.size() > kMaxForFirstFit) return best;
  const size_t promotions =
      std::min(kMaxPromotions, kPromotionWork / (buffers.size() * buffers.size()) / 3);
  for (std::vector<size_t>& order : FirstFitOrders(buffers)) {
    for (size_t round = 0; round <= promotions; ++round) {
      const Arena arena = FirstFit(buffers, order);
      if (arena.bytes < best.bytes && improve(arena)) return best;
      order = PromoteHighBuffers(buffers, arena, timeline.peak, std::move(order));
    }
  }
  return best;
}

Arena PlaceTightly(const Timeline& timeline) {
  Arena best = PlaceBuffers(timeline);
  if (best.bytes <= timeline.peak) return best;
  const std::vector<LiveInterval> intervals = IntervalsOf(timeline.buffers);
  const int64_t max_nodes = kSearchWork / static_cast<int64_t>(intervals.size());
  int64_t lower = MaxLiveTotal(intervals) - 1;  // The search found no slab of this size.
  for (int round = 0; round <= kBisections; ++round) {
    // The smallest possible size gets half of the work.
    const int64_t between = best.bytes.count() - lower;
    const int64_t capacity = round == 0 ? lower + 1 : lower + between / 2;
    if (between <= 1) break;
    std::optional<Arena> arena =
        Search(intervals, capacity, round == 0 ? max_nodes / 2 : max_nodes / 2 / kBisections);
    if (arena) {
      best = *std::move(arena);
    } else {
      lower = capacity;
    }
  }
  return best;
}

}  // namespace ckplan
