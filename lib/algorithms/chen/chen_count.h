// About sqrt(n) segments of equally many layers.
//
//   Chen, Xu, Zhang, Guestrin. "Training Deep Nets with Sublinear Memory Cost", 2016, section 4.3.
//
// Idea. The text divides n layers into k segments "equally". chen-sqrt takes that as equal memory;
// this is the reading of Kusumoto et al. 2019 (section 2, "sqrt(n) segments of length sqrt(n)") and
// of Hong et al. 2024 (Table 2): every ceil(sqrt(n))-th layer is a checkpoint, however large it is.
//
//   24 layers of VGG-19, k = 5:   1..5 | 6..10 | 11..15 | 16..20 | 21..24
//
// Guarantee  O(sqrt n) memory for n equal layers in a chain, one extra forward pass at the most.
//            A graph without inner splitting vertices is one segment, which is keep-all.
// Knob       k, the number of segments. Without a budget the number that segments of
//            ceil(sqrt(n)) layers come to, ceil(n / ceil(sqrt(n))).
// Cost       O(n) for each k.
// Paper      as chen-sqrt: `result.paper.peak_bytes` is x + y of Alg. 3.
// Differs    a layer is a block of the chain: a splitting vertex with what lies between it and the
//            one before. Segments have ceil(n / k) layers; the last ones have fewer, but one at
//            least, so that there are k of them.
#pragma once

#include <memory>

#include "lib/plan/solver.h"

namespace ckplan {

Result<std::unique_ptr<PreparedSolver>> PrepareChenCount(const Problem& problem,
                                                         const SolveLimits& limits);

}  // namespace ckplan
