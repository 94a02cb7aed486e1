// Offsets for intervals of time within a given capacity, by a search that restarts.
//
//   size   ┌─────────┐┌───┐
//     ▲    │    a    ││ c │    No two that live at the same time may overlap, none may exceed the
//     │    └──┬──────┴┴───┤    capacity (dynamic storage allocation, NP-hard).
//     │       │     b     │
//     └───────┴───────────┴──▶ time
//
// Idea. The canonical depth-first search (canonical_search.h) is exhaustive, but a wrong choice
// near its root can cost it any time. So it is run again and again, each time for more nodes and in
// another order of priority: by the largest total among an interval's sections, its width, its area
// or its size, first plainly, then with noise and with more weight for those that failed before.
//
// Guarantee  kPlaced: no overlap, and nothing above the capacity. kImpossible is proven.
//            The same answer for the same input and options on every machine: work is counted in
//            nodes, never in seconds.
// Cost       O(intervals) of time and of memory for each node; about a million nodes a second for
//            200 intervals. docs/algorithms.md has what it reaches on public benchmarks.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace ckplan {

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
  kOutOfNodes,  // Also for more intervals in one component than are searched (kMaxSearched).
};

struct IntervalPlacement {
  PlacementOutcome outcome = PlacementOutcome::kOutOfNodes;
  std::vector<int64_t> offsets;  // After kPlaced: parallel to the intervals.
  int64_t nodes = 0;             // Placements of single intervals that were tried.
};

// The stack and the memory of a search grow with the intervals that live in one component.
inline constexpr size_t kMaxSearched = 4096;

// Heeds lib/base/stop.h.
IntervalPlacement PlaceWithin(std::span<const LiveInterval> intervals, int64_t capacity,
                              const PlacementLimits& limits = {});

// The largest total size that lives at one time: no capacity below it suffices.
int64_t MaxLiveTotal(std::span<const LiveInterval> intervals);

}  // namespace ckplan
