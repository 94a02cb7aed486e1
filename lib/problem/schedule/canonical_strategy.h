// The canonical strategy of Kusumoto et al. 2019 (section 3): its memory and its overhead, by the
// paper's own definitions, for any increasing sequence of lower sets L_1 < ... < L_k = V.
//
//   V_i    = L_i \ L_{i-1}                  the i-th segment
//   d(L)   = nodes of L with a successor outside L                         boundary
//   U_i    = union of d(L_j), j <= i                                       what is cached
//   T      = sum of T(V_i \ d(L_i))                                        (Eq. 1)
//   M^(i)  = M(U_{i-1}) + 2 M(V_i) + M(d+(L_i) \ L_i)
//            + M(d-(d+(L_i)) \ L_i)                                        (Eq. 2)
//   M      = max M^(i)
//
// The last two terms of Eq. 2 may overlap and are both counted, as printed. d(V) is empty, so
// Eq. 1 charges the last segment too, although no schedule needs to recompute it.
#pragma once

#include <vector>

#include "lib/base/units.h"
#include "lib/problem/graph/tensor_graph.h"
#include "lib/problem/graph/vertex_graph.h"
#include "lib/problem/schedule/schedule.h"

namespace ckplan {

struct CanonicalFigures {
  Bytes peak;                        // M of Eq. 2.
  Cost overhead;                     // T of Eq. 1.
  std::vector<Bytes> segment_peaks;  // M^(1) to M^(k).
};

// Node v belongs to V_i for i = `segment_of[v]` + 1. None of the `segment_count` segments may be
// empty. O(segments + nodes + edges).
CanonicalFigures EvaluateCanonical(const VertexGraph& graph,
                                   const IdVector<NodeId, int32_t>& segment_of,
                                   int32_t segment_count);

// Strategy → Schedule with explicit frees: what the papers' strategies need without liveness
// analysis (Kusumoto et al. 2019, appendix C and Table 2).
//
// A sequence of lower sets goes segment by segment, as section 3 describes it:
//   forward    run a segment, then release all of it but its boundary;
//   backward   recompute what the segment's backward needs, all at once; run the segment backward;
//              then release all of it, its gradients as well, but for what backward steps of
//              earlier segments read: terms (iii) and (iv) of Eq. 2.
//
//   a → b | c → d     forward a b, free a, forward c d, loss, backward d c, free c d and d's
//                     gradient, forward a, backward b a, free a b and all gradients
//
// If the graph's backward steps are by input (WithBackwardByInput), a backward step may read the
// result of an operation of a later segment that is no input of an operation in term (iii): ReLU's
// backward reads ReLU's own result. As in the authors' program, such a result is recomputed just
// before the step and released right after it.
//
// If moreover every tensor needs a gradient, the last node is the only one without readers, and
// operations have no workspaces, then the peak of this schedule is M of Eq. 2, or exceeds it by
// such a result. By node, all gradients of a node's inputs are made at once, which Eq. 2 does not
// count, and the schedule does not say when gradients are released.
//
// Other strategies have no segments. Their schedule is that of LowerStrategy, and a plain rule
// releases tensors: a version that no step after the loss reads, or whose tensor is recomputed
// later, is dropped after its last reader. Every other version stays until the backward of the node
// that made it has run.
//
// A schedule that has frees of its own stays as it is.
//
// Nothing is written in place.
//
// Cost: O(nodes + edges).
Schedule LowerWithoutLiveness(const TensorGraph& graph, const Strategy& strategy);

// Adds explicit frees to the steps of `schedule`, by the rule for strategies without segments.
// Gradients are released after their last reader.
// `schedule` must be valid, with frees by liveness.
Schedule HoldUntilBackward(const TensorGraph& graph, const Schedule& schedule);

}  // namespace ckplan
