// Alg. 3 of Chen et al. 2016: a chain is cut wherever a segment has grown past a budget.
//
//   temp <- 0, x <- 0, y <- 0
//   for v in topological order:
//     temp <- temp + size of v's output
//     if v is a candidate and temp > B:  x <- x + size of v's output, y <- max(y, temp), temp <- 0
//
// The size is added before the test, so a cut vertex counts into the segment that it closes.
// Candidates are the splitting vertices, without the one that nothing follows: a cut there splits
// nothing. The segment that is open at the end counts into y as well; the printed program, which
// looks at y at cuts alone, would give a plan without cuts a memory of 0.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/base/units.h"
#include "lib/graph/chain.h"
#include "lib/graph/vertex_graph.h"

namespace ckplan {

struct GreedyCut {
  std::vector<int32_t> segment_of_block;
  int32_t segment_count = 1;
  Bytes kept;             // x, the sum of the results at the cuts.
  Bytes largest_segment;  // y
  Cost kept_time;         // Forward cost of the vertices at the cuts.
};

// O(nodes + blocks).
GreedyCut CutGreedily(const Chain& chain, const VertexGraph& vertices, Bytes budget);

// floor(sqrt(a b)), of sizes whose product may not fit 64 bits.
Bytes GeometricMean(Bytes a, Bytes b);

// Appendix A: B = sqrt(x y), with x and y from a first run with B = 0.
Bytes EstimateSegmentBudget(const Chain& chain, const VertexGraph& vertices);

}  // namespace ckplan
