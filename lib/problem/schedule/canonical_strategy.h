// The memory and the overhead of Kusumoto et al.'s canonical strategy (2019, section 3), by the
// paper's definitions, for an increasing sequence of lower sets L_1 < ... < L_k = V.
//
//   V_i    = L_i \ L_{i-1}                  the i-th segment
//   d(L)   = nodes of L with a successor outside L                         boundary
//   U_i    = union of d(L_j), j <= i                                       what is cached
//   T      = sum of T(V_i \ d(L_i))                                        (Eq. 1)
//   M^(i)  = M(U_{i-1}) + 2 M(V_i) + M(d+(L_i) \ L_i)
//            + M(d-(d+(L_i)) \ L_i)                                        (Eq. 2)
//   M      = max M^(i)
//
// The last two terms of Eq. 2 may overlap; both count, as printed. d(V) is empty, so Eq. 1 also
// charges the last segment, although schedules need not recompute it.
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

// Node v belongs to V_i with i = `segment_of[v]` + 1. No segment may be empty. O(segments + nodes +
// edges).
CanonicalFigures EvaluateCanonical(const VertexGraph& graph,
                                   const IdVector<NodeId, int32_t>& segment_of,
                                   int32_t segment_count);

// Strategy → Schedule with explicit frees, as the papers measure strategies without liveness
// analysis (Kusumoto et al. 2019, appendix C and Table 2).
//
// A sequence of lower sets runs segment by segment, as in section 3:
//   forward    run a segment, then release all of it except its boundary;
//   backward   recompute all tensors that the segment's backward needs; run the segment backward;
//              then release the segment and its gradients, except tensors that backward steps of
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
// Other strategies have no segments. They get the schedule of LowerStrategy and a simple rule for
// frees: a version that no step after the loss reads, or whose tensor is recomputed later, is freed
// after its last reader. Other versions stay until the backward of their producer.
//
// A schedule with explicit frees is returned unchanged. Nothing is written in place.
//
// Cost: O(nodes + edges).
Schedule LowerWithoutLiveness(const TensorGraph& graph, const Strategy& strategy);

// Adds explicit frees to `schedule` by the rule for strategies without segments. Gradients are
// freed after their last reader. `schedule` must be valid and free by liveness.
Schedule HoldUntilBackward(const TensorGraph& graph, const Schedule& schedule);

}  // namespace ckplan
