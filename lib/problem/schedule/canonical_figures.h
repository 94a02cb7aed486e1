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
#include "lib/problem/graph/vertex_graph.h"

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

}  // namespace ckplan
