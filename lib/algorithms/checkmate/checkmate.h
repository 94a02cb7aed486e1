// Optimal rematerialization by a mixed-integer linear program over time, for small graphs.
//
//   Jain, Jain, Nrusimha, Gholami, Abbeel, Keutzer, Stoica, Gonzalez. "Checkmate: Breaking the
//   Memory Wall with Optimal Tensor Rematerialization", MLSys 2020.
//
// Idea. Operations run first in the order of the graph. Stage t is what happens between the first
// run of operation t - 1 and that of operation t: earlier operations run again, each at most once
// and in their order, and then t runs (section 4.6, frontier-advancing stages). Whole variables say
//   R[t,i]  operation i runs in stage t,
//   S[t,v]  value v is in memory when stage t begins,
// and rows say that what is read is there (1b, 1c), and that memory suffices at each run.
//
// Guarantee  the least time of all plans in stages, where the solver proves it: it is stopped after
//            a number of iterations. A plan that runs an operation twice between two first runs, or
//            first runs in another order, may cost less. The least peak likewise.
// Knob       B, a limit on the simulated peak; the least peak without a budget.
// Needs      any graph of up to 80 operations of a step, forward and backward together: refuses
//            larger ones. Needs a ckplan that is built with HiGHS (lib/mip).
// Cost       O(n^2) whole variables and O(n (n + reads)) rows for n operations; a second for 45
//            operations, ten seconds for 75.
// Paper      the objective, (1b), (1c), and for the stages (8a) to (8c) are the paper's.
// Differs    - what is freed: the paper has a whole variable FREE for each value that an operation
//              reads, (5) to (7). Here N[t,v,j] says whether v is wanted at or after its j-th
//              reader of the stage, and is whole by itself where R and S are.
//            - operations with several values, workspaces, aliases, writes in place, and operations
//              that must not run again, none of which the paper has. What is in the memory of a
//              value that is made again is made again.
//            - the program is solved in proportions of the budget. A plan that passes the budget by
//              rounding is solved for once more, with a slightly smaller budget.
#pragma once

#include <memory>

#include "lib/plan/run_solver.h"

namespace ckplan {

// kUnsupported: too large a graph, or no solver.
Result<std::unique_ptr<PreparedRunSolver>> PrepareCheckmateRuns(const JointGraph& graph,
                                                                const SolveLimits& limits);
Result<std::unique_ptr<PreparedSolver>> PrepareCheckmate(const Problem& problem,
                                                         const SolveLimits& limits);

}  // namespace ckplan
