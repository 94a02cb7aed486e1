#include "lib/problem/schedule/interval_placement.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "lib/base/rng.h"
#include "lib/base/stop.h"

namespace ckplan {
namespace {

// Larger than any offset, but adding a size does not overflow.
constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max() / 4;

}  // namespace

CanonicalSearch::CanonicalSearch(std::vector<SectionInterval> intervals, int64_t capacity)
    : intervals_(std::move(intervals)),
      capacity_(capacity),
      neighbours_(intervals_.size()),
      twin_before_(intervals_.size(), -1),
      is_placed_(intervals_.size()),
      support_(intervals_.size()),
      bound_(intervals_.size()),
      offsets_(intervals_.size()),
      failures_(intervals_.size()),
      unplaced_(intervals_.size()) {
  std::iota(unplaced_.begin(), unplaced_.end(), 0);
  CountSections();
  ListNeighbours();
}

void CanonicalSearch::CountSections() {
  int32_t sections = 0;
  for (const SectionInterval& interval : intervals_) sections = std::max(sections, interval.upper);
  members_.resize(Index(sections));
  remaining_.resize(Index(sections));
  spanning_.resize(Index(sections));
  witness_.resize(Index(sections));
  std::map<std::tuple<int32_t, int32_t, int64_t>, int32_t> last_equal;
  for (const int32_t i : unplaced_) {
    const SectionInterval& interval = intervals_[Index(i)];
    for (int32_t s = interval.lower; s < interval.upper; ++s) {
      members_[Index(s)].push_back(i);
      remaining_[Index(s)] += interval.size;
      witness_[Index(s)] = i;
      if (s > interval.lower) ++spanning_[Index(s)];
    }
    const auto [equal, is_new] =
        last_equal.try_emplace({interval.lower, interval.upper, interval.size}, i);
    if (!is_new) twin_before_[Index(i)] = std::exchange(equal->second, i);
  }
}

// Two overlapping intervals first meet in the section where the later one begins.
void CanonicalSearch::ListNeighbours() {
  for (const int32_t i : unplaced_) {
    const int32_t begin = intervals_[Index(i)].lower;
    for (const int32_t other : members_[Index(begin)]) {
      const int32_t other_begin = intervals_[Index(other)].lower;
      if (other_begin > begin || (other_begin == begin && other <= i)) continue;
      neighbours_[Index(i)].push_back(other);
      neighbours_[Index(other)].push_back(i);
    }
  }
}

CanonicalSearch::Outcome CanonicalSearch::Run(int64_t max_nodes) {
  max_nodes_ = max_nodes;
  const auto sections = static_cast<int32_t>(members_.size());
  if (!SectionsFit(0, sections)) return Outcome::kExhausted;
  return SolveParts({0, unplaced_.size(), 0, sections}, Candidate());
}

// Places a component's intervals after `last`. Undoes its changes unless it places every interval
// or runs out of nodes.
CanonicalSearch::Outcome CanonicalSearch::Solve(const Component& component, Candidate last) {
  if (component.first == component.last) return Outcome::kPlaced;
  const Mark before = Now();
  while (const std::optional<Candidate> next = Next(component, last)) {
    if (nodes_ >= max_nodes_) return Outcome::kOutOfNodes;
    ++nodes_;
    PollStop();
    const Mark mark = Now();
    if (Place(*next)) {
      const Outcome outcome = SolveRest(component, *next);
      if (outcome != Outcome::kExhausted) return outcome;
    }
    UndoTo(mark);
    if (!Skip(*next)) break;
    last = *next;
  }
  UndoTo(before);
  return Outcome::kExhausted;
}

// Places the rest of a component after one of its intervals was placed.
CanonicalSearch::Outcome CanonicalSearch::SolveRest(const Component& component, Candidate placed) {
  const size_t first = unplaced_.size();
  for (size_t i = component.first; i < component.last; ++i) {
    if (unplaced_[i] != placed.interval) unplaced_.push_back(unplaced_[i]);
  }
  const Component rest = {first, unplaced_.size(), component.lower, component.upper};
  const SectionInterval& interval = intervals_[Index(placed.interval)];
  for (int32_t s = interval.lower + 1; s < interval.upper; ++s) {
    if (spanning_[Index(s)] == 0) return SolveParts(rest, placed);
  }
  return Solve(rest, placed);
}

// Places a component that may have split into several, from its first section to its last.
CanonicalSearch::Outcome CanonicalSearch::SolveParts(const Component& component, Candidate placed) {
  int32_t lower = component.lower;
  for (int32_t s = lower + 1; s <= component.upper; ++s) {
    if (s < component.upper && spanning_[Index(s)] > 0) continue;
    const size_t first = unplaced_.size();
    for (size_t i = component.first; i < component.last; ++i) {
      const int32_t begin = intervals_[Index(unplaced_[i])].lower;
      if (begin >= lower && begin < s) unplaced_.push_back(unplaced_[i]);
    }
    const Outcome outcome = Solve({first, unplaced_.size(), lower, s}, placed);
    if (outcome != Outcome::kPlaced) return outcome;
    lower = s;
  }
  return Outcome::kPlaced;
}

// Returns the highest possible offset of the next placement.
int64_t CanonicalSearch::OffsetLimit(const Component& component) const {
  int64_t limit = kNoLimit;
  for (int32_t s = component.lower; s < component.upper; ++s) {
    const int64_t remaining = remaining_[Index(s)];
    limit = std::min(limit, remaining > 0 ? capacity_ - remaining : kNoLimit);
  }
  for (size_t i = component.first; i < component.last; ++i) {
    const size_t interval = Index(unplaced_[i]);
    limit = std::min(limit, support_[interval] + intervals_[interval].size - 1);
  }
  return limit;
}

std::optional<CanonicalSearch::Candidate> CanonicalSearch::Next(const Component& component,
                                                                Candidate last) const {
  Candidate best = {OffsetLimit(component) + 1, -1};
  for (size_t i = component.first; i < component.last; ++i) {
    const int32_t interval = unplaced_[i];
    const int64_t offset = support_[Index(interval)];
    if (offset >= best.offset || bound_[Index(interval)] > offset) continue;
    if (offset < last.offset || (offset == last.offset && interval <= last.interval)) continue;
    const int32_t twin = twin_before_[Index(interval)];
    if (twin >= 0 && is_placed_[Index(twin)] == 0) continue;
    best = {offset, interval};
  }
  if (best.interval < 0) return std::nullopt;
  return best;
}

// Raises the interval's support and bound. Returns false if it then exceeds the capacity.
bool CanonicalSearch::Raise(int32_t interval, int64_t support, int64_t bound) {
  int64_t& old_support = support_[Index(interval)];
  int64_t& old_bound = bound_[Index(interval)];
  changes_.push_back({interval, old_support, old_bound});
  old_support = support;
  old_bound = std::max(old_bound, bound);
  return old_bound + intervals_[Index(interval)].size <= capacity_;
}

// Returns false if a section can no longer hold its unplaced intervals.
bool CanonicalSearch::Place(Candidate candidate) {
  const SectionInterval& interval = intervals_[Index(candidate.interval)];
  const int64_t top = candidate.offset + interval.size;
  is_placed_[Index(candidate.interval)] = 1;
  offsets_[Index(candidate.interval)] = candidate.offset;
  placed_.push_back(candidate.interval);
  for (int32_t s = interval.lower; s < interval.upper; ++s) remaining_[Index(s)] -= interval.size;
  for (int32_t s = interval.lower + 1; s < interval.upper; ++s) --spanning_[Index(s)];
  int32_t lower = interval.lower;
  int32_t upper = interval.upper;
  for (const int32_t other : neighbours_[Index(candidate.interval)]) {
    if (is_placed_[Index(other)] != 0 || support_[Index(other)] >= top) continue;
    if (!Raise(other, top, top)) return false;
    lower = std::min(lower, intervals_[Index(other)].lower);
    upper = std::max(upper, intervals_[Index(other)].upper);
  }
  return SectionsFit(lower, upper);
}

// Rules out the candidate's interval at its current support. Returns false if a section can no
// longer hold its unplaced intervals.
bool CanonicalSearch::Skip(Candidate candidate) {
  int64_t bound = kNoLimit;
  for (const int32_t other : neighbours_[Index(candidate.interval)]) {
    if (is_placed_[Index(other)] != 0) continue;
    bound = std::min(
        bound, std::max(bound_[Index(other)], candidate.offset) + intervals_[Index(other)].size);
  }
  if (!Raise(candidate.interval, support_[Index(candidate.interval)], bound)) return false;
  const SectionInterval& interval = intervals_[Index(candidate.interval)];
  return SectionsFit(interval.lower, interval.upper);
}

bool CanonicalSearch::SectionsFit(int32_t lower, int32_t upper) {
  for (size_t s = Index(lower); s < Index(upper); ++s) {
    const size_t witness = Index(witness_[s]);
    const bool fits = is_placed_[witness] == 0 && bound_[witness] + remaining_[s] <= capacity_;
    if (fits || remaining_[s] == 0 || FindWitness(s)) continue;
    for (const int32_t member : members_[s]) {
      if (is_placed_[Index(member)] == 0) ++failures_[Index(member)];
    }
    return false;
  }
  return true;
}

bool CanonicalSearch::FindWitness(size_t section) {
  for (const int32_t member : members_[section]) {
    if (is_placed_[Index(member)] != 0) continue;
    if (bound_[Index(member)] + remaining_[section] > capacity_) continue;
    witness_[section] = member;
    return true;
  }
  return false;
}

void CanonicalSearch::UndoTo(const Mark& mark) {
  while (changes_.size() > mark.changes) {
    const Change& change = changes_.back();
    support_[Index(change.interval)] = change.support;
    bound_[Index(change.interval)] = change.bound;
    changes_.pop_back();
  }
  while (placed_.size() > mark.placed) {
    const SectionInterval& interval = intervals_[Index(placed_.back())];
    for (int32_t s = interval.lower; s < interval.upper; ++s) remaining_[Index(s)] += interval.size;
    for (int32_t s = interval.lower + 1; s < interval.upper; ++s) ++spanning_[Index(s)];
    is_placed_[Index(placed_.back())] = 0;
    placed_.pop_back();
  }
  unplaced_.resize(mark.unplaced);
}

namespace {

// Returns false for empty intervals, which overlap nothing at any offset.
bool NeedsSpace(const LiveInterval& interval) {
  return interval.lower < interval.upper && interval.size > 0;
}

// A group of intervals that overlap no other intervals in time, with their sections.
struct Component {
  std::vector<size_t> ids;  // Indices into the caller's intervals.
  std::vector<SectionInterval> intervals;
};

// Cuts the time of each component into sections: the maximal sets of intervals that live at the
// same time, in order. Two intervals overlap if and only if they share a section. A set is maximal
// if an interval began since the previous section and an interval ends right after it.
class SectionCutter {
 public:
  std::vector<Component> Cut(std::span<const LiveInterval> intervals) {
    struct Events {
      std::vector<size_t> ends;
      std::vector<size_t> begins;
    };
    std::map<int64_t, Events> events;
    for (size_t i = 0; i < intervals.size(); ++i) {
      if (!NeedsSpace(intervals[i])) continue;
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
  int32_t section_ = 0;     // The current section.
  bool has_begun_ = false;  // An interval began since the previous section ended.
};

// Searches one component with restarts.
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
        weight += search.failures()[k] - weight / 16;  // Old failures fade.
      }
      ++restart_;
    }
    return PlacementOutcome::kOutOfNodes;
  }

  const std::vector<int64_t>& offsets() const { return offsets_; }
  int64_t nodes() const { return nodes_; }

 private:
  static constexpr int kOrders = 3;
  // Each key breaks the ties of the previous ones. Restarts cycle through the three orders.
  enum Key { kTotal, kWidth, kArea };
  static constexpr Key kKeys[kOrders][3] = {
      {kTotal, kWidth, kArea}, {kWidth, kArea, kTotal}, {kArea, kTotal, kWidth}};
  static constexpr int kRestartsPerLong = 64;
  // Enough nodes to finish a component with some backtracking: with longer restarts, fewer public
  // benchmarks are solved. One restart in kRestartsPerLong is longer than the last one like it, so
  // that the search can also exhaust a component.
  int64_t RestartNodes() const {
    const int64_t nodes = std::max<int64_t>(2000, 4 * static_cast<int64_t>(intervals_.size()));
    const bool is_long = restart_ % kRestartsPerLong == kRestartsPerLong - 1;
    return is_long ? nodes * (2 + restart_ / kRestartsPerLong) : nodes;
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
      keys_[i] = {static_cast<double>(total), width, width * size};
    }
  }

  // Returns the factor for an interval's first key, in percent: noise, times up to 3 for the
  // intervals that failed most. Totals differ little, so their factors stay closer to 100.
  int64_t Percent(size_t i, Key key, int64_t max_weight) {
    const int64_t noise = rng_.Between(-10, 10);
    const int64_t weight = max_weight > 0 ? 200 * weights_[i] / max_weight : 0;
    return key == kTotal ? (300 + noise) * (500 + weight) / 1500
                         : (100 + noise) * (100 + weight) / 100;
  }

  std::vector<size_t> NextOrder() {
    const auto& keys = kKeys[restart_ % kOrders];
    const int64_t max_weight = *std::max_element(weights_.begin(), weights_.end());
    // Uses products without sums, which give the same bits on every machine.
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
  std::vector<std::array<double, kOrders>> keys_;  // Indexed by Key.
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
    if (!NeedsSpace(interval)) continue;
    growth[interval.lower] += interval.size;
    growth[interval.upper] -= interval.size;
  }
  int64_t live = 0;
  int64_t max = 0;
  for (const auto& [time, change] : growth) max = std::max(max, live += change);
  return max;
}

int64_t ColoredTotal(std::span<const LiveInterval> intervals) {
  std::vector<const LiveInterval*> by_size;
  for (const LiveInterval& interval : intervals) {
    if (interval.lower < interval.upper) by_size.push_back(&interval);
  }
  std::stable_sort(by_size.begin(), by_size.end(),
                   [](const LiveInterval* a, const LiveInterval* b) { return a->size > b->size; });
  int64_t total = 0;
  std::vector<std::map<int64_t, int64_t>> colors;  // The upper end of each member, by its lower.
  for (const LiveInterval* interval : by_size) {
    PollStop();
    const auto is_free = [&](const std::map<int64_t, int64_t>& color) {
      const auto next = color.lower_bound(interval->lower);
      const bool is_free_after = next == color.end() || next->first >= interval->upper;
      return is_free_after && (next == color.begin() || std::prev(next)->second <= interval->lower);
    };
    auto color = std::find_if(colors.begin(), colors.end(), is_free);
    if (color == colors.end()) {
      total += interval->size;
      color = colors.emplace(colors.end());
    }
    color->emplace(interval->lower, interval->upper);
  }
  return total;
}

}  // namespace ckplan
