// Places buffers with fixed lifetimes (intervals) within a given capacity, by a search with
// restarts.
//
//   size   ┌─────────┐┌───┐
//     ▲    │    a    ││ c │    Intervals that live at the same time must not overlap or exceed the
//     │    └──┬──────┴┴───┤    capacity (dynamic storage allocation, NP-hard).
//     │       │     b     │
//     └───────┴───────────┴──▶ time
//
// Idea. The canonical depth-first search (below) is exhaustive, but a wrong choice near its root
// can cost any amount of time. So the search restarts soon, with another priority order: by the
// largest total among an interval's sections, its width or its area. The first restarts use the
// plain order; later ones add noise and give more weight to intervals that failed before.
//
// Guarantee  kPlaced: intervals do not overlap or exceed the capacity. kImpossible is proven.
//            The result depends only on the input and the options, since work is counted in nodes,
//            not seconds.
// Cost       O(intervals) time and memory per node; about a million nodes a second for 200
//            intervals. docs/algorithms.md has the results on public benchmarks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace ckplan {

struct SectionInterval {
  int32_t lower = 0;  // The interval lives in the sections [lower, upper), at least one.
  int32_t upper = 0;
  int64_t size = 0;  // At least 1.
};

// Depth-first search for offsets of one component's intervals, with one priority order.
//
//   Moffitt. "MiniMalloc: A Lightweight Memory Allocator for Hardware-Accelerated Machine
//   Learning", ASPLOS 2023.
//
// Time is divided into sections. An interval lives in the sections [lower, upper) and takes `size`
// bytes in each. Its support is the highest end of the intervals placed in its sections.
//
// Idea. In any placement, each interval can sink onto its support, and the intervals can then be
// placed in order of offset, with ties in priority order. So it is enough to try canonical
// placements: on supports, with increasing (offset, priority). Each node takes the first candidate
// after the last placement; its two branches place the candidate or skip it. These rules prune
// branches:
//   dominated   A candidate is not tried if an unplaced interval would fit entirely below it, since
//               that interval could sink there later.
//   skipped     Offsets never decrease, so a skipped interval must wait until an interval that is
//               now unplaced and lives at the same time lies below it. This bounds its offset from
//               below.
//   sections    The unplaced intervals of a section lie above the lowest of their bounds, so that
//               bound plus their total size must not exceed the capacity. Each section stores an
//               interval as a witness for this, and looks for another only if the witness moves.
//   components  If no unplaced interval spans the border of two sections, the two sides are
//               searched separately; if one side fails, so does the whole.
//   twins       Equal intervals are placed in priority order.
//
// Guarantee  kExhausted is a proof that no placement exists.
// Cost       O(intervals + sections) per node; a microsecond or less for 200 intervals.
// Differs    The paper has no bounds for skipped intervals, no witnesses and no twins.
class CanonicalSearch {
 public:
  // The intervals are in priority order. The sum of their sizes must be below 2^61.
  CanonicalSearch(std::vector<SectionInterval> intervals, int64_t capacity);

  enum class Outcome { kPlaced, kExhausted, kOutOfNodes };
  // May be called once. It can be stopped (lib/base/stop.h).
  Outcome Run(int64_t max_nodes);

  const std::vector<int64_t>& offsets() const { return offsets_; }  // Valid after kPlaced.
  int64_t nodes() const { return nodes_; }  // The number of placements tried.
  // Returns how often each interval was unplaced in a section that could no longer hold its
  // unplaced intervals.
  const std::vector<int64_t>& failures() const { return failures_; }

 private:
  // The unplaced intervals unplaced_[first, last), which are all unplaced intervals in the sections
  // [lower, upper).
  struct Component {
    size_t first = 0;
    size_t last = 0;
    int32_t lower = 0;
    int32_t upper = 0;
  };
  // A possible placement. The search visits candidates in increasing order.
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
  std::vector<int64_t> support_;  // Constant once the interval is placed.
  std::vector<int64_t> bound_;    // A lower bound on an unplaced interval's offset; >= its support.
  std::vector<int64_t> offsets_;
  std::vector<int64_t> failures_;

  // Indexed by section.
  std::vector<std::vector<int32_t>> members_;
  std::vector<int64_t> remaining_;  // The total size of the unplaced intervals.
  // The number of unplaced intervals that also live in the previous section.
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
  int64_t nodes = 0;             // The number of placements of single intervals tried.
};

// Limits the stack and the memory of a search, which grow with the intervals of a component.
inline constexpr size_t kMaxSearched = 4096;

// Can be stopped (lib/base/stop.h).
IntervalPlacement PlaceWithin(std::span<const LiveInterval> intervals, int64_t capacity,
                              const PlacementLimits& limits = {});

// Returns the largest total size at any time, which is a lower bound on the capacity.
int64_t MaxLiveTotal(std::span<const LiveInterval> intervals);

// Colours the conflict graph, which has an edge between two intervals that live at the same time,
// and returns the total size of the colours. A colour is memory of its own, as large as the largest
// interval that has it. Intervals take the first colour without a conflict, the largest first.
// O(intervals x colours), with a logarithmic factor. Can be stopped.
int64_t ColoredTotal(std::span<const LiveInterval> intervals);

}  // namespace ckplan
