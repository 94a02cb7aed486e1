// The two optimisation problems of Hong et al. 2024 over a list d_0, ..., d_n, and their solvers.
//
//   Eq. 6    static    sum of all checkpoints + the largest segment between two of them
//   Eq. 12   dynamic   max over checkpoints d_i, with d_h the one before it, of
//                        sum of checkpoints up to i
//                        + sum of d_k over h < k < i
//                        + max of d_k over h <= k < i
//
// Both ends are checkpoints. Only the list's candidates can be others; in the paper, every element
// is a candidate.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stop_token>
#include <vector>

#include "lib/base/result.h"
#include "lib/base/units.h"
#include "lib/problem/graph/tensor_graph.h"
#include "lib/problem/graph/vertex_graph.h"

namespace ckplan {

// A graph as the list of sizes in Hong et al. 2024: d_0, ..., d_n.
//
//   input x   conv   bn   relu        d_0 is the graph's inputs, or for a graph
//   d_0       d_1    d_2  d_3         without inputs its first vertex
//
// Every node is one element, in the graph's order. Only splitting vertices can be checkpoints; the
// inner tensors of a block count as segment memory. Both ends are checkpoints: an end without a
// splitting vertex gets an empty element.
struct LayerList {
  std::vector<Bytes> sizes;        // d_0, ..., d_n.
  std::vector<size_t> candidates;  // Positions that may be checkpoints, ascending, with both ends.
  std::vector<NodeId> nodes;       // Parallel to sizes; none for the inputs and for empty ends.

  // Cuts the graph after every checkpoint. Returns each node's segment, and sets the number of
  // segments. `checkpoints` holds ascending positions, including both ends.
  IdVector<NodeId, int32_t> Cut(const std::vector<size_t>& checkpoints,
                                int32_t* segment_count) const;
  // Returns the forward cost of all nodes except the checkpoints: the paper's recomputation cost.
  Cost RecomputedTime(const VertexGraph& vertices, const std::vector<size_t>& checkpoints) const;
};

// O(nodes + edges).
LayerList ListLayers(const TensorGraph& graph, const VertexGraph& vertices);

struct Checkpoints {
  std::vector<size_t> positions;  // Ascending, both ends included.
  Bytes objective;
  bool is_proven = true;  // False after a stop with some limits untried.
};

// Return Eq. 6 and Eq. 12 for the checkpoints.
Bytes StaticObjective(const LayerList& list, const std::vector<size_t>& checkpoints);
Bytes DynamicObjective(const LayerList& list, const std::vector<size_t>& checkpoints);

// Alg. 3 for Eq. 6. For one segment limit, a sliding minimum solves it in O(n). The paper tries all
// limits in descending order, in O(n^3) at worst. Here, the search bisects the gaps between solved
// limits, the most promising first, and skips gaps that cannot hold the optimum. The result is the
// same: among equally good solutions, the one with the largest limit. kTimeout: stopped before the
// first solution.
Result<Checkpoints> SelectStatic(const LayerList& list, std::stop_token stop);

// Alg. 5 for Eq. 12, in O(n^2). kTimeout: stopped.
Result<Checkpoints> SelectDynamic(const LayerList& list, std::stop_token stop);

// Alg. 6 for Eq. 12: O(n) queue operations, each with a binary search among the record maxima
// before the current position (about ln n of them for a random list).
Checkpoints SelectDynamicLinear(const LayerList& list);

}  // namespace ckplan
