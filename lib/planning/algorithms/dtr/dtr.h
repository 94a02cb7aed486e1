// Plans in advance what greedy eviction would do during the step.
//
//   Kirisame, Lyubomirsky, Haan, Brennan, He, Roesch, Chen, Tatlock. "Dynamic Tensor
//   Rematerialization", ICLR 2021.
//
// Idea. Operations run in the order of the graph, within a memory limit. While the next one does
// not fit, evict the storage t with the lowest
//
//   h_DTR(t) = (c_0(t) + the sum of c_0 over e*(t)) / (m(t) s(t))                     (section 2)
//
// Here c_0 is the cost of computing t, m its bytes, s the time since its last access, and e*(t) its
// evicted neighbourhood: the evicted storages that must be recomputed before t can be, or that need
// t to be recomputed. An operation's missing inputs are recomputed just before it, and their
// missing inputs before them. A storage is evicted as soon as its last reader has run.
//
// Guarantee  none. A larger limit may need more time, and some limits are too small although
//            smaller ones are not. So the walk is repeated for a fixed list of limits, each at most
//            15/16 of the one before. A budget gets the best of all plans whose simulated peak
//            fits, so more memory never costs more time.
// Knob       B, a limit on the simulated peak; without a budget, the lowest peak in the list.
// Needs      any graph of up to 20,000 operations.
// Cost       O(evictions x storages in memory) for each limit, plus a search among evicted storages
//            for each score that an eviction changes. On long chains that is nearly cubic, because
//            all evicted storages form one long neighbourhood. A stop keeps the plans for the
//            limits tried so far.
// Paper      the rules of its simulator, appendix C: eager eviction; a storage and its views, which
//            are aliases here, are computed and evicted together; results are in memory at the end.
// Differs    - the graph is known, so values that must not be recomputed, and those they depend on,
//              are never evicted while anything could need them. The paper's programs declare
//              constants instead.
//            - an operation may write in place of a storage whose last use it is.
//            - s counts from 1, since an operation may cost nothing.
#pragma once

#include <memory>

#include "lib/planning/plan/run_solver.h"

namespace ckplan {

// kUnsupported: the graph is too large.
Result<std::unique_ptr<PreparedRunSolver>> PrepareDtrRuns(const JointGraph& graph,
                                                          const SolveLimits& limits);

}  // namespace ckplan
