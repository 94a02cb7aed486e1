// Offsets for all buffers of a timeline in one slab of memory.
//
// Idea. Seen as rectangles, a buffer has a fixed place in time and slides along the memory axis;
// the task is to stack the rectangles without overlap in as little height as possible (NP-hard).
// A skyline packer fills the lowest valley of what is stacked so far with a buffer that fits
// between the valley's walls, or raises the valley's floor to its lower wall when none fits.
//
//   height        ┌────┐
//     ▲    ┌──────┤    │  ◀ the valley between the two towers is filled next, by a buffer
//     │    │      │    ├──┐   whose whole life lies within it
//     └────┴──────┴────┴──┴──▶ ticks
//
// Which of several fitting buffers goes first is a rule; a portfolio of rules is tried, each in
// O(n log n), until one reaches the lower bound (the peak). For small problems first-fit orders
// are tried as well.
//
// Guarantee  no two buffers that live at the same time overlap; not always the smallest height:
//            docs/algorithms.md has the measured ratios.
#pragma once

#include <vector>

#include "lib/base/units.h"
#include "lib/problem/schedule/timeline.h"

namespace ckplan {

struct Arena {
  Bytes bytes;                 // Size of the slab.
  std::vector<Bytes> offsets;  // Parallel to the timeline's buffers.
};

Arena PlaceBuffers(const Timeline& timeline);

// Returns the slab of PlaceBuffers if it is as large as the peak. Otherwise it searches for a slab
// of the peak's size, then for the smallest size between the two (interval_placement.h). The slab
// is never larger than that of PlaceBuffers. The search takes half a second at most and is skipped
// if more than kMaxSearched buffers live in one stretch of overlapping lives.
Arena PlaceTightly(const Timeline& timeline);

}  // namespace ckplan
