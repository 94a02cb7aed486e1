// Places intervals of time within a given capacity, by a search with restarts.
//
//   size   ┌─────────┐┌───┐
//     ▲    │    a    ││ c │    Intervals that live at the same time may not overlap, and none may
//     │    └──┬──────┴┴───┤    exceed the capacity (dynamic storage allocation, NP-hard).
//     │       │     b     │
//     └───────┴───────────┴──▶ time
//
// Idea. The canonical depth-first search (below) is exhaustive, but a wrong choice
// near its root can cost any amount of time. So the search is restarted, each time with more nodes
// and another order of priority: by the largest total among an interval's sections, its width, its
// area or its size. The first restarts use the plain order; later ones add noise and give more
// weight to the intervals that failed before.
//
// Guarantee  kPlaced: no overlap, and nothing above the capacity. kImpossible is proven.
//            The answer depends only on the input and the options: work is counted in nodes, never
//            in seconds.
// Cost       O(intervals) of time and of memory for each node; about a million nodes a second for
//            200 intervals. docs/algorithms.md has the results on public benchmarks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace ckplan {

// Depth-first search for offsets of intervals within a capacity: one priority order, one component.
//
//   Moffitt. "MiniMalloc: A Lightweight Memory Allocator for Hardware-Accelerated Machine
//   Learning", ASPLOS 2023.
//
// Time is a row of sections. An interval lives in the neighbouring sections [lower, upper) and
// takes `size` bytes in each. Its support is the highest top of the intervals placed in its
// sections.
//
// Idea. In any placement every interval can sink onto its support, and the intervals can then be
// placed by offset, from the lowest to the highest, ties in priority order. So it is enough to try
// placements on supports whose (offset, priority) increases along the search: the canonical
// placements. Each node takes the first candidate after the last placement; its two branches place
// the candidate or skip it. These rules cut branches:
//   dominated   A candidate is not tried if an unplaced interval would fit wholly below its offset,
//               because that interval could sink there afterwards.
//   skipped     Offsets never decrease, so a skipped interval must wait until some interval that
//               lives at the same time and is unplaced now lies below it. This bounds its offset
//               from below.
//   sections    The unplaced intervals of a section lie above the least of their bounds. That bound
//               plus their total size must not exceed the capacity. Each section remembers one
//               interval as a witness that it does not, and looks for another only when the witness
//               has moved.
//   components  If no unplaced interval spans the border of two sections, the two sides are
//               searched separately; if one side fails, so does the whole.
//   twins       Equal intervals are placed in order of priority.
//
// Guarantee  kExhausted is a proof that no placement exists.
// Cost       O(intervals + sections) for each node; a microsecond or less for 200 intervals.
// Differs    The bound of skipped intervals, the witnesses and the twins are not in the paper.
struct SectionInterval {
  int32_t lower = 0;  // The interval lives in the sections [lower, upper), at least one.
  int32_t upper = 0;
  int64_t size = 0;  // At least 1.
};

class CanonicalSearch {
 public:
  // The intervals are in order of priority. The sum of their sizes must be below 2^61.
  CanonicalSearch(std::vector<SectionInterval> intervals, int64_t capacity);

  enum class Outcome { kPlaced, kExhausted, kOutOfNodes };
  // May be called once. It can be stopped (lib/base/stop.h).
  Outcome Run(int64_t max_nodes);

  const std::vector<int64_t>& offsets() const { return offsets_; }  // Valid after kPlaced.
  int64_t nodes() const { return nodes_; }                          // Number of placements tried.
  // For each interval, how often it was unplaced in a section that could not hold its unplaced
  // intervals any more.
  const std::vector<int64_t>& failures() const { return failures_; }

 private:
  // The unplaced intervals unplaced_[first, last); no other unplaced interval lives in the sections
  // [lower, upper).
  struct Component {
    size_t first = 0;
    size_t last = 0;
    int32_t lower = 0;
    int32_t upper = 0;
  };
  // A placement made or considered; the search visits candidates in increasing order.
  struct Candidate {
    int64_t offset = 0;
    int32_t interval = -1;
  };
  struct Change {
    int32_t interval = 0;
    int64_t support = 0;  // The values before the change.
    int64_t bound = 0;
  };
  struct Mark {
    size_t changes = 0;
    size_t placed = 0;
    size_t unplaced = 0;
  };

  void ListNeighbours();
  void CountSections();
  Outcome Solve(const Component& component, Candidate last);
  Outcome SolveRest(const Component& component, Candidate placed);
  Outcome SolveParts(const Component& component, Candidate placed);
  std::optional<Candidate> Next(const Component& component, Candidate last) const;
  int64_t OffsetLimit(const Component& component) const;
  bool Place(Candidate candidate);
  bool Skip(Candidate candidate);
  bool SectionsFit(int32_t lower, int32_t upper);
  bool FindWitness(size_t section);
  bool Raise(int32_t interval, int64_t support, int64_t bound);
  Mark Now() const { return {changes_.size(), placed_.size(), unplaced_.size()}; }
  void UndoTo(const Mark& mark);

  static size_t Index(int32_t id) { return static_cast<size_t>(id); }

  const std::vector<SectionInterval> intervals_;
  const int64_t capacity_;
  int64_t max_nodes_ = 0;
  int64_t nodes_ = 0;

  // Indexed by interval.
  std::vector<std::vector<int32_t>> neighbours_;  // The intervals that share a section with it.
  std::vector<int32_t> twin_before_;  // The equal interval of the next higher priority, or -1.
  std::vector<char> is_placed_;
  std::vector<int64_t> support_;  // No longer changes once the interval is placed.
  std::vector<int64_t> bound_;    // Least offset of an unplaced interval: its support or above.
  std::vector<int64_t> offsets_;
  std::vector<int64_t> failures_;

  // Indexed by section.
  std::vector<std::vector<int32_t>> members_;
  std::vector<int64_t> remaining_;  // Total size of the unplaced intervals.
  // Number of unplaced intervals that also live in the section before.
  std::vector<int32_t> spanning_;
  std::vector<int32_t> witness_;

  std::vector<int32_t> unplaced_;  // A stack of the components' intervals.
  std::vector<int32_t> placed_;
  std::vector<Change> changes_;
};

struct LiveInterval {
  int64_t lower = 0;  // Lives in [lower, upper), in any unit of time; may be empty.
  int64_t upper = 0;
  int64_t size = 0;  // Bytes, at least 0; the sum over all intervals must be below 2^61.
};

struct PlacementLimits {
  int64_t max_nodes = 10'000'000;
  uint64_t seed = 0;
};

enum class PlacementOutcome {
  kPlaced,
  kImpossible,  // No placement within the capacity exists.
  kOutOfNodes,  // Also returned if one component has more than kMaxSearched intervals.
};

struct IntervalPlacement {
  PlacementOutcome outcome = PlacementOutcome::kOutOfNodes;
  std::vector<int64_t> offsets;  // Parallel to the intervals; valid after kPlaced.
  int64_t nodes = 0;             // Number of placements of single intervals that were tried.
};

// The stack and the memory of a search grow with the number of intervals in one component.
inline constexpr size_t kMaxSearched = 4096;

// Can be stopped (lib/base/stop.h).
IntervalPlacement PlaceWithin(std::span<const LiveInterval> intervals, int64_t capacity,
                              const PlacementLimits& limits = {});

// Returns the largest total size that lives at one time. No smaller capacity suffices.
int64_t MaxLiveTotal(std::span<const LiveInterval> intervals);

}  // namespace ckplan
