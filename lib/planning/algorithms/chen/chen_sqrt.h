// About sqrt(n) segments of equal memory.
//
//   Chen, Xu, Zhang, Guestrin. "Training Deep Nets with Sublinear Memory Cost", 2016, section 4.3.
//
// Idea. Cut the chain of splitting vertices into k segments, keep the k - 1 results at the cuts,
// and recompute each segment from the cut before it. Kept memory grows with k, segment memory
// shrinks with it; k = sqrt(n) balances the two for n equal layers.
//
// Guarantee  O(sqrt n) memory for n equal layers in a chain, at most one extra forward pass. A
//            graph without inner splitting vertices is one segment, which is keep-all.
// Knob       k, the number of segments; without a budget sqrt(number of splitting vertices).
// Cost       O(n) for each k.
// Paper      x is the sum of the kept results, y the largest segment with its cut (Alg. 3):
//            `result.paper.peak_bytes` is x + y, and the overhead is the cost of every node that is
//            not kept.
// Differs    the paper leaves the cuts open: we cut at the first splitting vertex at or past each
//            multiple of the graph's memory / k. Kusumoto et al. 2019 cut the same way, at the
//            boundaries of one vertex; their k is floor(sqrt(c + 1)) for c splitting vertices,
//            which `--knob segments=K` sets (`ckbench kusumoto`).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "lib/planning/plan/solver.h"
#include "lib/problem/graph/vertex_graph.h"

namespace ckplan {

Result<std::unique_ptr<PreparedSolver>> PrepareChenSqrt(const Problem& problem,
                                                        const SolveLimits& limits);

// About sqrt(n) segments with equal numbers of layers.
//
//   Chen, Xu, Zhang, Guestrin. "Training Deep Nets with Sublinear Memory Cost", 2016, section 4.3.
//
// Idea. The paper divides n layers into k segments "equally". chen-sqrt takes that as equal memory.
// chen-count takes it as an equal number of layers, like Kusumoto et al. 2019 (section 2, "sqrt(n)
// segments of length sqrt(n)") and Hong et al. 2024 (Table 2): every ceil(sqrt(n))-th layer is a
// checkpoint, however large it is.
//
//   24 layers of VGG-19, k = 5:   1..5 | 6..10 | 11..15 | 16..20 | 21..24
//
// Guarantee  O(sqrt n) memory for n equal layers in a chain, at most one extra forward pass. A
//            graph without inner splitting vertices is one segment, which is keep-all.
// Knob       k, the number of segments. Without a budget ceil(n / ceil(sqrt(n))), the number of
//            segments of ceil(sqrt(n)) layers.
// Cost       O(n) for each k.
// Paper      as chen-sqrt: `result.paper.peak_bytes` is x + y of Alg. 3.
// Differs    a layer is a block of the chain: a splitting vertex with the nodes between it and the
//            one before. Segments have ceil(n / k) layers; the last ones have fewer, but at least
//            one, so that there are k segments.
Result<std::unique_ptr<PreparedSolver>> PrepareChenCount(const Problem& problem,
                                                         const SolveLimits& limits);

// Shared by chen-sqrt and chen-count: the plan of a chain cut into segments.

// Builds the plan. `segment_of_block` has the segment of each block of the chain, ascending from 0
// without gaps. `result.paper` has x + y of Alg. 3 (the sum of the results at the cuts, and the
// largest segment with its cut), and the forward cost of every node that is not at a cut.
SolveOutcome PlanOfSegments(const Problem& problem, const Chain& chain,
                            const std::vector<int32_t>& segment_of_block);

}  // namespace ckplan
