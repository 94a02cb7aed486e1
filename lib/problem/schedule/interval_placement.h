// Places intervals of time within a given capacity, by a search with restarts.
//
//   size   ┌─────────┐┌───┐
//     ▲    │    a    ││ c │    Intervals that live at the same time may not overlap, and none may
//     │    └──┬──────┴┴───┤    exceed the capacity (dynamic storage allocation, NP-hard).
//     │       │     b     │
//     └───────┴───────────┴──▶ time
//
// Idea. The canonical depth-first search (canonical_search.h) is exhaustive, but a wrong choice
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
