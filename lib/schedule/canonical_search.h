// Depth-first search for offsets of intervals within a capacity: one priority order, one component.
//
//   Moffitt. "MiniMalloc: A Lightweight Memory Allocator for Hardware-Accelerated Machine
//   Learning", ASPLOS 2023.
//
// Time is a row of sections; an interval lives in neighbouring ones, [lower, upper), and takes
// `size` bytes in each. Its support is the highest top of what is placed in its sections.
//
// Idea. In any placement every interval can sink onto its support, and then be placed by offset,
// from the lowest to the highest, ties in priority order. So it is enough to try placements on
// supports whose (offset, priority) increases along the search: the canonical placements. Each node
// takes the first candidate behind the last placement; its two branches place it or skip it.
//   dominated   A candidate is not tried if an unplaced interval would fit wholly below its offset:
//               that one could sink there afterwards.
//   skipped     Offsets never decrease, so a skipped interval has to wait until an unplaced one
//   that
//               lives at the same time lies below it, which bounds its offset from below.
//   sections    What is unplaced in a section lies above the least bound of its intervals: with
//               their total, this must not exceed the capacity. A section remembers one interval as
//               witness that it does not, and looks for another only when that one has moved.
//   components  Where no unplaced interval spans the border of two sections, what lies on either
//               side is searched by itself; if one side fails, so does the whole.
//   twins       Of equal intervals that of higher priority is placed first.
//
// Guarantee  kExhausted is a proof that no placement exists.
// Cost       O(intervals + sections) for each node; a microsecond or less for 200 intervals.
// Differs    the bound of skipped intervals, witnesses and twins are ours.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace ckplan {

struct SectionInterval {
  int32_t lower = 0;  // Sections: [lower, upper), never empty.
  int32_t upper = 0;
  int64_t size = 0;  // At least 1.
};

class CanonicalSearch {
 public:
  // `intervals` stand in order of priority. The sum of their sizes must be below 2^61.
  CanonicalSearch(std::vector<SectionInterval> intervals, int64_t capacity);

  enum class Outcome { kPlaced, kExhausted, kOutOfNodes };
  // To be called once. Heeds lib/base/stop.h.
  Outcome Run(int64_t max_nodes);

  const std::vector<int64_t>& offsets() const { return offsets_; }  // After kPlaced.
  int64_t nodes() const { return nodes_; }                          // Placements tried.
  // How often each interval was unplaced in a section that could no longer hold all of its own.
  const std::vector<int64_t>& failures() const { return failures_; }

 private:
  // Unplaced intervals, unplaced_[first, last), that alone live in the sections [lower, upper).
  struct Component {
    size_t first = 0;
    size_t last = 0;
    int32_t lower = 0;
    int32_t upper = 0;
  };
  // A placement that is made or considered; the search goes through them in increasing order.
  struct Candidate {
    int64_t offset = 0;
    int32_t interval = -1;
  };
  struct Change {
    int32_t interval = 0;
    int64_t support = 0;  // What they were before.
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

  // By interval.
  std::vector<std::vector<int32_t>> neighbours_;  // Those that share a section with it.
  std::vector<int32_t> twin_before_;  // The equal interval of next higher priority, or -1.
  std::vector<char> is_placed_;
  std::vector<int64_t> support_;  // Frozen once it is placed.
  std::vector<int64_t> bound_;    // Least offset of an unplaced interval: its support or above.
  std::vector<int64_t> offsets_;
  std::vector<int64_t> failures_;

  // By section.
  std::vector<std::vector<int32_t>> members_;
  std::vector<int64_t> remaining_;  // Total size of what is unplaced.
  std::vector<int32_t> spanning_;  // Unplaced intervals that live in the section before it as well.
  std::vector<int32_t> witness_;

  std::vector<int32_t> unplaced_;  // A stack of components' intervals.
  std::vector<int32_t> placed_;
  std::vector<Change> changes_;
};

}  // namespace ckplan
