// Segments by Alg. 3, plus results of costly operations of up to one segment's memory.
//
//   Chen, Xu, Zhang, Guestrin. "Training Deep Nets with Sublinear Memory Cost", 2016, section 4.3:
//   "We can also generalize this algorithm by considering the cost to run each operation to try to
//   keep time consuming operations when possible."
//
// Idea. Alg. 3 gives every result inside a segment m(v) = 1, whatever it costs to compute. Here the
// results that save most time for each byte get m(v) = 0 as well, up to B bytes in total:
// convolutions rather than the normalisations and activations after them.
//
// Guarantee  none; the overhead is at most that of chen-greedy with the same B, and x + y is at
//            most B larger. A graph without inner splitting vertices is keep-all.
// Knob       B, the bytes that a segment may hold, as for chen-greedy; without a budget sqrt(x y)
//            of Alg. 3 with B = 0.
// Cost       O(n log n) once, and O(n) for each B.
// Paper      x is the sum of kept results, y the largest segment: `result.paper.peak_bytes` is x +
//            y, and the overhead is the cost of every node with m(v) = 1.
// Differs    the paper says no more than the sentence above. It leaves open
//            - what is time consuming: here, forward cost per byte of the result, in descending
//              order; among equals the earlier node.
//            - when keeping is possible: here, while these results total at most B bytes, so that
//              memory stays O(sqrt n) where that of Alg. 3 is. A result that does not fit is
//              skipped, and smaller ones are tried.
//            - y: here, a kept result counts into x and into its segment as well, like one at a
//              cut.
//            Cuts are those of Alg. 3. The last segment is kept without being counted, since our
//            schedules never drop it.
#pragma once

#include <memory>

#include "lib/planning/plan/solver.h"

namespace ckplan {

Result<std::unique_ptr<PreparedSolver>> PrepareChenKeepCostly(const Problem& problem,
                                                              const SolveLimits& limits);

}  // namespace ckplan
