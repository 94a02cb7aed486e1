// The division tree of Feng & Huang 2019 (Definitions 1-9): every way to cut a graph into segments
// with one source and one target each.
//
//        ┌─▶ c ──┐
//   s ─▶ a       e ─▶ t         [s, t]                  splittable at a and e
//        └─▶ d ──┘               ├─ edge s a
//                                ├─ [a, e]              branched
//                                │   ├─ [a, e]          splittable at c: edges a c, c e
//                                │   └─ [a, e]          splittable at d: edges a d, d e
//                                └─ edge e t
//
// The vertices in a close set [i, j] have edges only to each other, to i and to j; i leads to all
// of them and all of them lead to j. A close set is an edge, or has one of three types:
//   1 splittable   every path passes its splitting vertices; divided at them.
//   2 branched     no splitting vertex, and disconnected without i and j; divided into branches.
//                  A direct edge from i to j is a branch.
//   3 non-branched neither; divided by its maximal split: the close sets inside it that no other
//                  one contains, and the edges in none of them.
// The tree is unique (the paper's Theorem 1), so it does not depend on the order of the vertices.
//
// Cost. O(nodes + edges) for each level of the tree. Type 3 is reduced first: each vertex with one
// edge in and one out becomes one edge, and so do parallel edges. The remaining graph is small. Its
// close sets lie between a dominator and a post-dominator of their vertices, so only such pairs are
// tried. The paper tries all pairs of the unreduced graph.
#pragma once

#include <cstdint>
#include <stop_token>
#include <vector>

#include "lib/base/result.h"
#include "lib/base/units.h"
#include "lib/planning/algorithms/feng/two_terminal.h"

namespace ckplan {

enum class CloseSetKind { kEdge, kSplittable, kBranched, kNonBranched, kUndivided };

struct CloseSet {
  CloseSetKind kind = CloseSetKind::kEdge;
  VertexId begin;                 // i
  VertexId end;                   // j
  Bytes memory;                   // The sum over all vertices between them.
  std::vector<VertexId> inner;    // For types 1 and 3: the vertices at which it is divided,
                                  // ascending.
  std::vector<int32_t> children;  // In order of (begin, end, first vertex inside).
};

struct DivisionTree {
  std::vector<CloseSet> close_sets;  // The root comes first, children come after their parents.
};

// The limit on steps in a division: a few seconds. One step handles a vertex of a region being
// divided, or a close set that the vertex may lie in.
inline constexpr int64_t kMaxDivisionSteps = 10'000'000;

// Builds the whole tree. kTimeout: stopped. kUnsupported: more than `max_steps` steps. For nested
// levels, steps grow with the square or cube of the graph's size.
Result<DivisionTree> DivideGraph(const TwoTerminalGraph& graph, std::stop_token stop,
                                 int64_t max_steps = kMaxDivisionSteps);

// Returns only the root and its children between splitting vertices: the graph as a chain. O(nodes
// + edges).
DivisionTree DivideAtSplittingVertices(const TwoTerminalGraph& graph);

}  // namespace ckplan
