// Alg. 3 of Chen et al. 2016: it cuts a chain wherever a segment exceeds a budget.
//
//   temp <- 0, x <- 0, y <- 0
//   for v in topological order:
//     temp <- temp + size of v's output
//     if v is a candidate and temp > B:  x <- x + size of v's output, y <- max(y, temp), temp <- 0
//
// The size is added before the test, so a cut vertex counts into the segment that it closes.
// Candidates are the splitting vertices, except one at the very end: a cut there would split
// nothing. The last segment counts into y as well; the printed program updates y only at cuts, and
// so gives a plan without cuts a memory of 0.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/base/units.h"
#include "lib/problem/graph/chain.h"
#include "lib/problem/graph/vertex_graph.h"

namespace ckplan {

struct GreedyCut {
  std::vector<int32_t> segment_of_block;
  int32_t segment_count = 1;
  Bytes kept;             // x, the sum of the results at the cuts.
  Bytes largest_segment;  // y, the largest segment.
  Cost kept_time;         // Forward cost of the vertices at the cuts.
};

// O(nodes + blocks).
GreedyCut CutGreedily(const Chain& chain, const VertexGraph& vertices, Bytes budget);

// Returns floor(sqrt(a b)) for sizes whose product may not fit 64 bits.
Bytes GeometricMean(Bytes a, Bytes b);

// Appendix A: B = sqrt(x y), with x and y from a first run with B = 0.
Bytes EstimateSegmentBudget(const Chain& chain, const VertexGraph& vertices);

}  // namespace ckplan
