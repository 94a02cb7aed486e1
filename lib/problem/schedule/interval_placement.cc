#include "lib/problem/schedule/interval_placement.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <utility>

#include "lib/base/rng.h"
#include "lib/problem/schedule/canonical_search.h"

namespace ckplan {
namespace {

// Indices of the intervals that must be placed. The others overlap nothing, wherever they lie.
bool TakesRoom(const LiveInterval& interval) {
  return interval.lower < interval.upper && interval.size > 0;
}

// A group of intervals that overlap no other interval in time; their time is cut into sections.
struct Component {
  std::vector<size_t> ids;  // Indices into the caller's intervals.
  std::vector<SectionInterval> intervals;
};

// Cuts the time of each component into sections, the maximal sets of intervals that live at one
// time, in order of time. Two intervals overlap if and only if they share a section. A set is
// maximal if an interval ends after it and an interval began since the previous section.
class SectionCutter {
 public:
  std::vector<Component> Cut(std::span<const LiveInterval> intervals) {
    struct Events {
      std::vector<size_t> ends;
      std::vector<size_t> begins;
    };
    std::map<int64_t, Events> events;
    for (size_t i = 0; i < intervals.size(); ++i) {
      if (!TakesRoom(intervals[i])) continue;
      events[intervals[i].lower].begins.push_back(i);
      events[intervals[i].upper].ends.push_back(i);
    }
    position_.resize(intervals.size());
    for (const auto& [time, at] : events) {
      for (const size_t i : at.ends) End(i);
      for (const size_t i : at.begins) Begin(i, intervals[i].size);
    }
    return std::move(components_);
  }

 private:
  void Begin(size_t id, int64_t size) {
    if (live_ == 0) {
      components_.emplace_back();
      section_ = 0;
    }
    Component& component = components_.back();
    position_[id] = component.intervals.size();
    component.ids.push_back(id);
    component.intervals.push_back({section_, section_, size});
    has_begun_ = true;
    ++live_;
  }

  void End(size_t id) {
    if (std::exchange(has_begun_, false)) ++section_;
    components_.back().intervals[position_[id]].upper = section_;
    --live_;
  }

  std::vector<Component> components_;
  std::vector<size_t> position_;  // Position in its component.
  size_t live_ = 0;
  int32_t section_ = 0;     // The section that is open.
  bool has_begun_ = false;  // Whether an interval began since the last section was closed.
};

// Restarts the search over one component.
class Restarts {
 public:
  Restarts(const Component& component, int64_t capacity, Rng* rng)
      : intervals_(component.intervals),
        capacity_(capacity),
        rng_(*rng),
        keys_(intervals_.size()),
        weights_(intervals_.size()),
        offsets_(intervals_.size()) {
    MeasureKeys();
  }

  PlacementOutcome Run(int64_t max_nodes) {
    while (nodes_ < max_nodes) {
      const std::vector<size_t> order = NextOrder();
      std::vector<SectionInterval> ordered;
      for (const size_t i : order) ordered.push_back(intervals_[i]);
      CanonicalSearch search(std::move(ordered), capacity_);
      const auto outcome = search.Run(std::min(max_nodes - nodes_, RestartNodes()));
      nodes_ += search.nodes();
      if (outcome == CanonicalSearch::Outcome::kExhausted) return PlacementOutcome::kImpossible;
      if (outcome == CanonicalSearch::Outcome::kPlaced) {
        for (size_t k = 0; k < order.size(); ++k) offsets_[order[k]] = search.offsets()[k];
        return PlacementOutcome::kPlaced;
      }
      for (size_t k = 0; k < order.size(); ++k) {
        int64_t& weight = weights_[order[k]];
        weight += search.failures()[k] - weight / 16;  // Old failures count less and less.
      }
      ++restart_;
    }
    return PlacementOutcome::kOutOfNodes;
  }

  const std::vector<int64_t>& offsets() const { return offsets_; }
  int64_t nodes() const { return nodes_; }

 private:
  static constexpr int kOrders = 4;
  // Each key breaks the ties of the keys before it; restarts begin with each key in turn.
  enum Key { kTotal, kWidth, kArea, kSize };
  static constexpr Key kKeys[kOrders][3] = {{kTotal, kWidth, kArea},
                                            {kWidth, kArea, kTotal},
                                            {kArea, kTotal, kWidth},
                                            {kSize, kWidth, kTotal}};
  // Enough nodes to finish a component even if many choices are undone. Long restarts are worse: a
  // hundred times as many nodes solve fewer of the public benchmarks.
  int64_t RestartNodes() const {
    return std::max<int64_t>(2000, 4 * static_cast<int64_t>(intervals_.size())) *
           (kOrders + restart_) / kOrders;
  }

  void MeasureKeys() {
    int32_t sections = 0;
    for (const SectionInterval& i : intervals_) sections = std::max(sections, i.upper);
    std::vector<int64_t> totals(static_cast<size_t>(sections));
    const auto from = [&](int32_t s) { return totals.begin() + s; };
    for (const SectionInterval& i : intervals_) {
      std::for_each(from(i.lower), from(i.upper), [&](int64_t& total) { total += i.size; });
    }
    for (size_t i = 0; i < intervals_.size(); ++i) {
      const SectionInterval& interval = intervals_[i];
      const auto width = static_cast<double>(interval.upper - interval.lower);
      const auto size = static_cast<double>(interval.size);
      const int64_t total = *std::max_element(from(interval.lower), from(interval.upper));
      keys_[i] = {static_cast<double>(total), width, width * size, size};
    }
  }

  // Returns the factor for an interval's first key, in percent: noise, and up to three times as
  // much for the intervals that failed most. Totals differ little, so their factors stay closer to
  // 100.
  int64_t Percent(size_t i, Key key, int64_t max_weight) {
    const int64_t noise = rng_.Between(-30, 30);
    const int64_t weight = max_weight > 0 ? 200 * weights_[i] / max_weight : 0;
    return key == kTotal ? (300 + noise) * (500 + weight) / 1500
                         : (100 + noise) * (100 + weight) / 100;
  }

  std::vector<size_t> NextOrder() {
    const auto& keys = kKeys[restart_ % kOrders];
    const int64_t max_weight = *std::max_element(weights_.begin(), weights_.end());
    // Only products, no sums, give the same bits on every machine.
    std::vector<std::array<double, 3>> ranks(intervals_.size());
    for (size_t i = 0; i < intervals_.size(); ++i) {
      const int64_t percent = restart_ < kOrders ? 100 : Percent(i, keys[0], max_weight);
      ranks[i] = {keys_[i][keys[0]] * static_cast<double>(percent), keys_[i][keys[1]],
                  keys_[i][keys[2]]};
    }
    std::vector<size_t> order(intervals_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return ranks[a] > ranks[b]; });
    return order;
  }

  const std::vector<SectionInterval>& intervals_;
  const int64_t capacity_;
  Rng& rng_;
  std::vector<std::array<double, 4>> keys_;  // Indexed by Key.
  std::vector<int64_t> weights_;
  std::vector<int64_t> offsets_;
  int64_t nodes_ = 0;
  int64_t restart_ = 0;
};

}  // namespace

IntervalPlacement PlaceWithin(std::span<const LiveInterval> intervals, int64_t capacity,
                              const PlacementLimits& limits) {
  IntervalPlacement placement;
  std::vector<int64_t> offsets(intervals.size());
  const std::vector<Component> components = SectionCutter().Cut(intervals);
  for (const Component& component : components) {
    if (component.ids.size() > kMaxSearched) return placement;
  }
  Rng rng(limits.seed);
  for (const Component& component : components) {
    Restarts restarts(component, capacity, &rng);
    placement.outcome = restarts.Run(limits.max_nodes - placement.nodes);
    placement.nodes += restarts.nodes();
    if (placement.outcome != PlacementOutcome::kPlaced) return placement;
    for (size_t k = 0; k < component.ids.size(); ++k) {
      offsets[component.ids[k]] = restarts.offsets()[k];
    }
  }
  placement.outcome = PlacementOutcome::kPlaced;
  placement.offsets = std::move(offsets);
  return placement;
}

int64_t MaxLiveTotal(std::span<const LiveInterval> intervals) {
  std::map<int64_t, int64_t> growth;
  for (const LiveInterval& interval : intervals) {
    if (!TakesRoom(interval)) continue;
    growth[interval.lower] += interval.size;
    growth[interval.upper] -= interval.size;
  }
  int64_t live = 0;
  int64_t max = 0;
  for (const auto& [time, change] : growth) max = std::max(max, live += change);
  return max;
}

}  // namespace ckplan
