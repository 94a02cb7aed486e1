// Strategy → Schedule with explicit frees: what the papers' strategies need without liveness
// analysis (Kusumoto et al. 2019, appendix C and Table 2).
//
// A sequence of lower sets goes segment by segment, as section 3 describes it:
//   forward    run a segment, then release all of it but its boundary;
//   backward   recompute what the segment's backward needs, all at once; run the segment backward;
//              then release all of it.
//
//   a → b | c → d     forward a b, free a, forward c d, loss, backward d c, free c d,
//                     forward a, backward b a, free a b
//
// Other strategies have no segments. Their schedule is that of LowerStrategy, and a plain rule
// releases tensors: a version that no step after the loss reads, or whose tensor is recomputed
// later, is dropped after its last reader. Every other version stays until the backward of the node
// that made it has run.
//
// A schedule that has frees of its own stays as it is.
//
// Nothing is written in place. Strategies do not decide on gradients, which live as in simulate.h.
//
// Cost: O(nodes + edges).
#pragma once

#include "lib/problem/graph/tensor_graph.h"
#include "lib/problem/schedule/schedule.h"
#include "lib/problem/schedule/strategy.h"

namespace ckplan {

Schedule LowerWithoutLiveness(const TensorGraph& graph, const Strategy& strategy);

// Adds explicit frees to the steps of `schedule`, by the rule for strategies without segments.
// `schedule` must be valid, with frees by liveness.
Schedule HoldUntilBackward(const TensorGraph& graph, const Schedule& schedule);

}  // namespace ckplan
