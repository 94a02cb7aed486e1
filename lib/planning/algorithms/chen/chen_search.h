// Takes the best of a small grid of segment budgets, measuring each plan exactly.
//
//   Chen, Xu, Zhang, Guestrin. "Training Deep Nets with Sublinear Memory Cost", 2016, Appendix A.
//
// Idea. Alg. 3 (chen-greedy) only estimates its memory. So run it with B = 0, set B = sqrt(x y)
// from that run, and then try six budgets on [B / sqrt 2, sqrt 2 B]: each plan is lowered, its
// buffers are placed, and the plan with the least arena wins.
//
// Guarantee  none; the arena is never larger than that of chen-greedy without a budget, whose B is
//            tried as well.
// Knob       which B is taken: 1 is sqrt(x y) itself, 2 to 7 are the grid in ascending order.
//            Without a budget it is the winner; with `--budget` the one of least overhead that
//            fits.
// Cost       lowering and simulating seven plans, and placing those whose simulated peak leaves
//            them a chance to win.
// Paper      B, x, y -> greedy_cut.h; `result.paper` as chen-greedy.
// Differs    - "static allocation" is the arena of the plan file, in-place reuse included.
//            - the text leaves the spacing of the grid open: equal steps, as in the authors' own
//              program, both ends included. Among equal arenas, the one with less overhead wins,
//              then the lower setting.
#pragma once

#include <memory>

#include "lib/planning/plan/solver.h"

namespace ckplan {

inline constexpr int64_t kGridSize = 6;

Result<std::unique_ptr<PreparedSolver>> PrepareChenSearch(const Problem& problem,
                                                          const SolveLimits& limits);

}  // namespace ckplan
