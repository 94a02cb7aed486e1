// k results kept on each level, what lies between them solved in the same way.
//
//   Chen, Xu, Zhang, Guestrin. "Training Deep Nets with Sublinear Memory Cost", 2016,
//   section 4.4, Eq. 2 and 3.
//
// Idea. Cut the chain into k + 1 segments and see each as one operator, whose backward is a
// training step of its own over fewer layers: it runs its forward again, keeping k results, and
// cuts its own segments. So a layer is recomputed once for each level that its segment is not the
// last one of (mirror counts above 1), and g(n) = k + g(n / (k + 1)) = k log_{k+1} n.
//
// Guarantee  k ceil(log_{k+1} n) kept results for a chain of n layers, each of them run forward
//            again ceil(log_{k+1} n) times at the most. For equal layers the simulated peak is at
//            most three layers above that: the end of the chain and two gradients.
// Knob       k; 1 without a budget, the paper's special case of log2 n.
// Cost       O((nodes + edges + crossings) log_{k+1} n) for each k, where a result crosses each cut
//            between blocks until its last reader. Graphs with more than 50 million crossings are
//            refused: thousands of results that all wait for one of the last nodes.
// Paper      `result.paper.peak_bytes` is g, in bytes: the results at the cuts, level by level, and
//            in the end the inner vertices of a block. The overhead is one forward run of every
//            segment that is cut.
// Differs    - segments are cut into equal numbers of blocks, as Eq. 2 has it, whatever their size.
//            - the last segment of a level needs no second run, and a run stops at its last cut
//              (lib/schedule/lower_recursive.h), so the real overhead is below the paper's.
#pragma once

#include <memory>

#include "lib/plan/solver.h"

namespace ckplan {

Result<std::unique_ptr<PreparedSolver>> PrepareChenRecursive(const Problem& problem,
                                                             const SolveLimits& limits);

}  // namespace ckplan
