// Optimal rematerialization by a mixed-integer linear program over time, for small graphs.
//
//   Jain, Jain, Nrusimha, Gholami, Abbeel, Keutzer, Stoica, Gonzalez. "Checkmate: Breaking the
//   Memory Wall with Optimal Tensor Rematerialization", MLSys 2020.
//
// Idea. First runs of operations follow the order of the graph. Stage t lies between the first run
// of operation t - 1 and that of operation t: earlier operations run again, each at most once and
// in their order, and then t runs (section 4.6, frontier-advancing stages). Binary variables:
//   R[t,i]  operation i runs in stage t,
//   S[t,v]  value v is in memory when stage t begins,
// Rows require that values are in memory when they are read (1b, 1c), and that memory suffices at
// each run.
//
// Guarantee  the least time of all plans in stages, if the solver proves it: it is stopped after a
//            number of iterations. A plan that runs an operation twice between two first runs, or
//            that has first runs in another order, may cost less. The same holds for the least
//            peak.
// Knob       B, a limit on the simulated peak; without a budget the least peak.
// Needs      any graph of up to 80 operations of a step, forward and backward together: refuses
//            larger ones. Needs a ckplan that is built with HiGHS (lib/planning/mip).
// Cost       O(n^2) binary variables and O(n (n + reads)) rows for n operations; a second for 45
//            operations, ten seconds for 75.
// Paper      the objective, (1b), (1c), and for the stages (8a) to (8c) are the paper's.
// Differs    - how memory is freed: the paper has a binary variable FREE for each value that an
//              operation reads, (5) to (7). Here N[t,v,j] says whether v is needed at or after its
//              j-th reader in the stage, and is binary whenever R and S are.
//            - operations may have several values, workspaces, aliases, writes in place, or may be
//              forbidden to run again; the paper has none of these. When a value is recomputed, all
//              values in its memory are.
//            - the program is scaled by the budget. If a plan exceeds the budget by rounding, the
//              program is solved once more with a slightly smaller budget.
#pragma once

#include <memory>

#include "lib/planning/plan/run_solver.h"

namespace ckplan {

// kUnsupported: the graph is too large, or there is no solver.
Result<std::unique_ptr<PreparedRunSolver>> PrepareCheckmateRuns(const JointGraph& graph,
                                                                const SolveLimits& limits);

}  // namespace ckplan
