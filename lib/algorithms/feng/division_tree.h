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
// A close set [i, j] holds vertices with edges to each other, to i and to j alone; i leads to all
// of them and all of them lead to j. It is an edge, or one of three types:
//   1 splittable   every path passes its splitting vertices; divided at them.
//   2 branched     no splitting vertex, and falls apart without i and j; divided into its branches.
//                  A direct edge from i to j is a branch.
//   3 non-branched neither; divided by its maximal split: the close sets inside it that no other
//                  one contains, and the edges in none of them.
// The tree is unique (the paper's Theorem 1), so nothing here depends on any order.
//
// Cost. O(nodes + edges) for each level of the tree. Type 3 is first reduced: a vertex with one
// edge in and one out, and parallel edges, become one edge that stands for them. What is left is
// small; close sets in it lie between a dominator and a post-dominator of their vertices, so only
// such pairs are tried. The paper tries all pairs of the unreduced graph.
#pragma once

#include <cstdint>
#include <stop_token>
#include <vector>

#include "lib/algorithms/feng/two_terminal.h"
#include "lib/base/result.h"
#include "lib/base/units.h"

namespace ckplan {

enum class CloseSetKind { kEdge, kSplittable, kBranched, kNonBranched, kUndivided };

struct CloseSet {
  CloseSetKind kind = CloseSetKind::kEdge;
  VertexId begin;                 // i
  VertexId end;                   // j
  Bytes memory;                   // All vertices between them.
  std::vector<VertexId> inner;    // For types 1 and 3: where it is divided, ascending.
  std::vector<int32_t> children;  // In order of (begin, end, first vertex inside).
};

struct DivisionTree {
  std::vector<CloseSet> close_sets;  // The root first, children after their parents.
};

// A division that takes more steps is refused: a few seconds. A step is a vertex of a region that
// is divided, or a close set that it may lie in.
inline constexpr int64_t kMaxDivisionSteps = 10'000'000;

// kTimeout: stopped. kUnsupported: more steps than `max_steps`; levels within levels take a number
// that grows with the square or the cube of the graph.
Result<DivisionTree> DivideGraph(const TwoTerminalGraph& graph, std::stop_token stop,
                                 int64_t max_steps = kMaxDivisionSteps);

// A tree of the root and its children between splitting vertices alone, which are not divided
// further: the graph as a chain. O(nodes + edges).
DivisionTree DivideAtSplittingVertices(const TwoTerminalGraph& graph);

}  // namespace ckplan
