// Keeps k results per level, and solves the segments between them recursively.
//
//   Chen, Xu, Zhang, Guestrin. "Training Deep Nets with Sublinear Memory Cost", 2016,
//   section 4.4, Eq. 2 and 3.
//
// Idea. Cut the chain into k + 1 segments and treat each as one operator. Its backward is a
// training step of its own over fewer layers: it reruns the segment's forward, keeps k results, and
// cuts the segment in turn. So a layer is recomputed once per level on which its segment is not the
// last (mirror counts above 1), and g(n) = k + g(n / (k + 1)) = k log_{k+1} n.
//
// Guarantee  k ceil(log_{k+1} n) kept results for a chain of n layers, each of which is recomputed
//            at most ceil(log_{k+1} n) times. For equal layers the simulated peak is at most three
//            layers above that: the end of the chain and two gradients.
// Knob       k; without a budget 1, the paper's special case of log2 n.
// Cost       O((nodes + edges + crossings) log_{k+1} n) for each k, where a result crosses each cut
//            between blocks until its last reader. Rejects graphs with more than 50 million
//            crossings, in which thousands of results wait for one of the last nodes.
// Paper      `result.paper.peak_bytes` is g in bytes: the results at the cuts, level by level, and
//            finally the inner vertices of a block. The overhead is one forward run of every
//            segment that is cut.
// Differs    - segments are cut into equal numbers of blocks, as in Eq. 2, regardless of their
// size.
//            - the last segment of a level needs no second run, and a run stops at its last cut
//              (lib/problem/schedule/lower.h), so the real overhead is below the paper's.
#pragma once

#include <memory>

#include "lib/planning/plan/solver.h"

namespace ckplan {

Result<std::unique_ptr<PreparedSolver>> PrepareChenRecursive(const Problem& problem,
                                                             const SolveLimits& limits);

}  // namespace ckplan
