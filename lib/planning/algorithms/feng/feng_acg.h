// Kept tensors plus the largest segment, for graphs of any shape.
//
//   Feng, Huang. "Cutting Down Training Memory by Re-forwarding", 2018, section 4, Algorithms 2-6
//   (the ACG solver; Algorithms 2-5 of the 2019 version).
//
// Idea. A segment may be any part of the graph with one source and one target (a close set), not
// only a stretch of the chain: one branch of a block, or a stretch of a branch. All of them are in
// the division tree (division_tree.h). For a max term C, a close set is divided only if it does not
// fit C, since dividing keeps vertices inside it; the best division over all C is the answer.
//
// Guarantee  optimal for Eq. 1 among divisions into close sets; by Eq. 1 never worse than
//            feng-linear. Segments with several sources or targets can do better
//            (docs/algorithms.md).
// Needs      any DAG. Several sources or targets are joined (two_terminal.h).
// Knob       C, the bytes that a segment may hold; without a budget the C that is best for Eq. 1.
// Cost       the division tree once, then O(tree) for each C that is tried.
// Paper      s_ij -> CloseSet, l(v) -> memory of a vertex, max term m -> max_term.
// Differs    terms are searched, not listed, as in feng-linear. A run of children of a splittable
//            close set may mix edges and close sets, as long as all fit C. Source and target are
//            left out of the objective, as in the authors' program. Assumption 2 (section 4.1 of
//            the 2019 version) says that the backward of an operation with several inputs does not
//            need their values: that of Add and Concat does not, that of Mul does. It is not
//            required here. If a division violates it, several segments are recomputed at once, the
//            simulated peak includes that, and the guarantee names the operation. The paper's
//            workaround, "to store all the input tensors of this multi-input operation", is outside
//            its objective and its algorithms; users can choose it by `given`.
#pragma once

#include <memory>

#include "lib/planning/plan/solver.h"

namespace ckplan {

Result<std::unique_ptr<PreparedSolver>> PrepareFengAcg(const Problem& problem,
                                                       const SolveLimits& limits);

}  // namespace ckplan
