// The maximal split of a non-branched close set without splitting vertices (Feng & Huang 2019,
// Definition 7, Algorithm 4), for division_tree.cc. division_tree.h says what is faster here than
// in the paper.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "lib/planning/algorithms/feng/two_terminal.h"

namespace ckplan {

// A close set that has not been divided yet: [begin, end] with all vertices inside.
struct Region {
  VertexId begin;
  VertexId end;
  std::vector<VertexId> inside;  // Ascending.
  bool has_edge = false;         // The close set includes the edge from begin to end.
};

// Returns the members in no particular order: the close sets inside `region` that are in no other
// one, and the edges in none of these. Counts its steps in `steps`: pairs of a vertex and a close
// set that it may lie in. Returns nothing if there would be more than `max_steps`.
std::optional<std::vector<Region>> MaximalSplit(const TwoTerminalGraph& graph, const Region& region,
                                                int64_t max_steps, int64_t* steps);

}  // namespace ckplan
