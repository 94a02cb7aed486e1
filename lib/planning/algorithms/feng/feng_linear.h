// Kept tensors plus the largest segment, along the chain.
//
//   Feng, Huang. "Cutting Down Training Memory by Re-forwarding", 2018, section 3, Algorithm 1
//   (the LCG solver).
//
// Idea. Keep a set V_R of vertices of the chain, and recompute the segment between two of them
// before its backward: memory is l(V_R) plus the largest segment (Eq. 1). With the second term
// bounded by C, the best V_R is a shortest path in the accessibility graph; so one path for each
// max term C, and the best of them all.
//
// Guarantee  optimal for Eq. 1 among subsets of the chain's splitting vertices. Eq. 1 is not the
//            peak: it ignores gradients and tensors that are freed early.
// Needs      any DAG; the nodes between two splitting vertices are one block whose inner tensors
//            are segment memory. Without inner splitting vertices it keeps everything.
// Knob       C, the bytes that a segment may hold; without a budget the C that is best for Eq. 1.
// Cost       O(n) for each C that is tried, n splitting vertices; at most the O(n^2) terms of the
//            paper's list, in practice tens to hundreds.
// Paper      V_R -> kept, l(v) -> memory of a TwoTerminalGraph's vertex, C -> max_term.
// Differs    the terms are not listed: a search over C skips terms that cannot be better, which is
//            the paper's "skip B <= l < C" and a bound (accessibility_graph.h). Zero is a term like
//            any other. Source and target are left out of the objective, as in the authors' ACG
//            program; the vertices between them count in the same way in both.
#pragma once

#include <memory>

#include "lib/planning/plan/solver.h"

namespace ckplan {

Result<std::unique_ptr<PreparedSolver>> PrepareFengLinear(const Problem& problem,
                                                          const SolveLimits& limits);

}  // namespace ckplan
