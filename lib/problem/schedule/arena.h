// Computes offsets for all buffers of a timeline in one slab of memory.
//
// Idea. A buffer is a rectangle with a fixed place in time that can slide along the memory axis.
// The task is to stack the rectangles without overlap as low as possible (NP-hard). A skyline
// packer fills the lowest valley of the stack with a buffer that fits between the valley's walls;
// if no buffer fits, it raises the valley's floor to the lower wall.
//
//   height        ┌────┐
//     ▲    ┌──────┤    │  ◀ the valley between the two towers is filled next, by a buffer
//     │    │      │    ├──┐   whose whole life lies within it
//     └────┴──────┴────┴──┴──▶ ticks
//
// A rule chooses between fitting buffers. Several rules are tried, each in O(n log n), until one
// reaches the lower bound (the peak). Small problems also try first-fit orders.
//
// Guarantee  buffers that live at the same time do not overlap. The slab is not always the smallest
//            possible; docs/algorithms.md has the measured ratios.
#pragma once

#include <vector>

#include "lib/base/units.h"
#include "lib/problem/schedule/timeline.h"

namespace ckplan {

struct Arena {
  Bytes bytes;                 // The size of the slab.
  std::vector<Bytes> offsets;  // Parallel to the timeline's buffers.
};

Arena PlaceBuffers(const Timeline& timeline);

// If the slab of PlaceBuffers is larger than the peak, searches for a slab of the peak's size, then
// for the smallest size between the two (interval_placement.h). The search takes at most half a
// second, and is skipped if a component has more than kMaxSearched buffers.
Arena PlaceTightly(const Timeline& timeline);

}  // namespace ckplan
