// Greedy eviction while the step runs, planned ahead of it.
//
//   Kirisame, Lyubomirsky, Haan, Brennan, He, Roesch, Chen, Tatlock. "Dynamic Tensor
//   Rematerialization", ICLR 2021.
//
// Idea. Operations run in the order of the graph, within a limit on memory. When the next one does
// not fit, the storage t with the least
//
//   h_DTR(t) = (c_0(t) + the sum of c_0 over e*(t)) / (m(t) s(t))                     (section 2)
//
// is evicted, until it fits: c_0 is the cost of making t, m its bytes, s the time since it was read
// or made, and e*(t) its evicted neighbourhood: what is evicted and must be made again before t can
// be, or needs t to be made again. What an operation reads and is gone is made again just before,
// and what that reads before it. A storage whose last reader has run is evicted at once.
//
// Guarantee  none. A larger limit may need more time, and some limits are too small where smaller
//            ones are not. So the walk is repeated for a fixed list of limits, each at most 15/16
//            of the one before, and a budget gets the best of all plans whose simulated peak is
//            within it: more memory never costs more time.
// Knob       B, a limit on the simulated peak; the least peak of the list without a budget.
// Needs      any graph of up to 20,000 operations: refuses larger ones.
// Cost       O(evictions x storages in memory) for each limit, and a search among evicted storages
//            for each score that an eviction has changed: on long chains nearly cubic, since what
//            is evicted there is one long neighbourhood. A stop leaves the plans of the limits so
//            far.
// Paper      the rules of its simulator, appendix C: eager eviction; a storage and the views of it,
//            which are aliases here, come and go together; results are in memory in the end.
// Differs    - the graph is known, so what must not run again, and what that depends on, is never
//              evicted while anything could need it. The paper's programs declare constants
//              instead.
//            - an operation may write in place of a storage that dies there.
//            - s counts from 1, since an operation may cost nothing.
#pragma once

#include <memory>

#include "lib/plan/run_solver.h"

namespace ckplan {

// kUnsupported: too large a graph.
Result<std::unique_ptr<PreparedRunSolver>> PrepareDtrRuns(const JointGraph& graph,
                                                          const SolveLimits& limits);
Result<std::unique_ptr<PreparedSolver>> PrepareDtr(const Problem& problem,
                                                   const SolveLimits& limits);

}  // namespace ckplan
