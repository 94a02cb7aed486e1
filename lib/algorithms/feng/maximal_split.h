// The maximal split of a non-branched close set without splitting vertices (Feng & Huang 2019,
// Definition 7, Algorithm 4). For division_tree.cc; see there for what is faster than the paper.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "lib/algorithms/feng/two_terminal.h"

namespace ckplan {

// A close set that has not been looked into: [begin, end] with all vertices inside.
struct Region {
  VertexId begin;
  VertexId end;
  std::vector<VertexId> inside;  // Ascending.
  bool has_edge = false;         // The edge from begin to end belongs to it.
};

// The members, in no particular order. Close sets inside `region` that no other one contains, and
// the edges in none of them. Counts its steps in `steps`: pairs of a vertex and a close set that it
// may lie in. Nothing if that would become more than `max_steps`.
std::optional<std::vector<Region>> MaximalSplit(const TwoTerminalGraph& graph, const Region& region,
                                                int64_t max_steps, int64_t* steps);

}  // namespace ckplan
