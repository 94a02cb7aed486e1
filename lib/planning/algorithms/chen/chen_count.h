// About sqrt(n) segments of equally many layers.
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
#pragma once

#include <memory>

#include "lib/planning/plan/solver.h"

namespace ckplan {

Result<std::unique_ptr<PreparedSolver>> PrepareChenCount(const Problem& problem,
                                                         const SolveLimits& limits);

}  // namespace ckplan
