// The best of a small grid of segment budgets, each plan costed exactly.
//
//   Chen, Xu, Zhang, Guestrin. "Training Deep Nets with Sublinear Memory Cost", 2016, Appendix A.
//
// Idea. Alg. 3 (chen-greedy) knows its memory only roughly. So run it with B = 0, set
// B = sqrt(x y) from that run, and then try six budgets on [B / sqrt 2, sqrt 2 B]: each plan is
// lowered and its buffers are placed, and the one of the least arena wins.
//
// Guarantee  none; never a larger arena than chen-greedy without a budget, whose B is tried too.
// Knob       which B is taken: 1 is sqrt(x y) itself, 2 to 7 are the grid upwards. The winner
//            without a budget; with `--budget` the one of least overhead that fits.
// Cost       seven times lowering, simulating and, where the simulated peak leaves a chance to
//            win, placing.
// Paper      B, x, y -> greedy_cut.h; `result.paper` as chen-greedy.
// Differs    - "static allocation" is the arena of the plan file, in-place reuse included.
//            - the text leaves the spacing of the grid open: equal steps, as in the authors' own
//              program, both ends included. Of equal arenas: less overhead, then the lower setting.
#pragma once

#include <memory>

#include "lib/plan/solver.h"

namespace ckplan {

inline constexpr int64_t kGridSize = 6;

Result<std::unique_ptr<PreparedSolver>> PrepareChenSearch(const Problem& problem,
                                                          const SolveLimits& limits);

}  // namespace ckplan
