// Optimal rematerialization by a mixed-integer linear program over time, for small graphs.
//
//   Jain, Jain, Nrusimha, Gholami, Abbeel, Keutzer, Stoica, Gonzalez. "Checkmate: Breaking the
//   Memory Wall with Optimal Tensor Rematerialization", MLSys 2020.
//
// Idea. Operations run for the first time in the order of the graph. Stage t lies between the first
// run of operation t - 1 and that of operation t: earlier operations may run again, each at most
// once and in order, and then t runs (section 4.6, frontier-advancing stages). Binary variables:
//   R[t,i]  operation i runs in stage t,
//   S[t,v]  value v is in memory when stage t begins.
// Rows ensure that values are in memory when they are read (1b, 1c), and that memory suffices at
// each run.
//
// Guarantee  the least time of all plans in stages, if the solver proves it within its limit of
//            iterations. Plans that run an operation twice between two first runs, or that change
//            the order of first runs, may cost less. The same holds for the lowest peak.
// Knob       B, a limit on the simulated peak; without a budget, the lowest peak.
// Needs      any graph of up to 80 operations in a step, forward and backward together, and a
//            ckplan built with HiGHS (lib/planning/mip).
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

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "lib/base/result.h"
#include "lib/planning/mip/mip.h"
#include "lib/planning/plan/run_solver.h"
#include "lib/problem/graph/joint_graph.h"
#include "lib/problem/runs/run_problem.h"

namespace ckplan {

// The mixed-integer program of checkmate.h, and the plans from its solutions.
//
// Rows, with R[t,t] = 1. N[t,v,j] is at least S[t+1,v], and at least R[t,r] for the j-th reader r
// of v in stage t and for each later reader:
//
//   R[t,i] <= R[t,m] + S[t,v]              i reads v, which m produces                     (1b)
//   S[t,v] <= R[t-1,m] + S[t-1,v]                                                          (1c)
//   S[t,v] + R[t,m] <= 1                   no value is kept and then recomputed
//   S[t,a] <= S[t,v],  S[t,a] + R[t,m] <= 1         for an alias a in the memory of v
//   For each k that may run in t, the budget covers the sum of: the bytes of N[t,v,j] for values
//   from before k, where j is the first reader from k on; of S[t,v] for values from after k; of
//   R[t,k] for values that k writes; and its workspace.
//
// A write that takes over the memory of a read of the same size gives those bytes back if N says
// that the read is no longer needed. It takes over the first such memory that it can, and each
// memory only once. So the rows count what the simulator counts, except for rounding.
struct StageSolution {
  MipStatus status = MipStatus::kStopped;
  std::optional<Runs> runs;  // The best plan found.
};

class StageProgram {
 public:
  // The graph and the problem must outlive this object.
  StageProgram(const JointGraph& graph, const RunProblem& problem);

  // Finds a plan with the least time within the budget. Because of rounding, it may need slightly
  // more. Returns the errors of SolveMip.
  Result<StageSolution> MinTime(int64_t budget) const;
  // Finds a plan with the lowest peak, at most `highest`, the peak of the graph's own order.
  Result<StageSolution> LeastPeak(int64_t highest) const;

 private:
  class Builder;

  Result<StageSolution> Solve(std::optional<int64_t> budget, int64_t highest) const;

  const JointGraph& graph_;
  const RunProblem& problem_;
  std::vector<std::vector<InPlaceWrite>> takeovers_;  // By operation.
  // The last stage in which each operation can be useful: its own stage or later.
  std::vector<int32_t> useful_until_;
  // By value, the last stage at whose start the value can be useful.
  std::vector<int32_t> needed_until_;
};

// kUnsupported: the graph is too large, or ckplan was built without a solver.
Result<std::unique_ptr<PreparedRunSolver>> PrepareCheckmateRuns(const JointGraph& graph,
                                                                const SolveLimits& limits);

}  // namespace ckplan
