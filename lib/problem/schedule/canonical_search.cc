#include "lib/problem/schedule/canonical_search.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "lib/base/stop.h"

namespace ckplan {
namespace {

// Larger than any offset; adding a size to it does not overflow.
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

// Two intervals first meet in the section where the later one begins.
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

// Places a component's intervals after `last`. Undoes all changes unless every interval is placed
// or the nodes are used up.
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

// Places a component that may have fallen apart into several, from its first section to its last.
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

// Returns the highest offset that the next placement may have.
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

// Raises the interval's support and bound. Returns false if it would then exceed the capacity.
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

// Rules out placing the candidate's interval at its present support. Returns false if a section can
// no longer hold its unplaced intervals.
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

}  // namespace ckplan
