// The mixed-integer program of checkmate.h, and the plans of its solutions.
//
// Rows, with R[t,t] = 1. N[t,v,j] is at least S[t+1,v], and at least R[t,r] for the j-th reader r
// of v in stage t and for each later reader:
//
//   R[t,i] <= R[t,m] + S[t,v]              i reads v, which m makes                        (1b)
//   S[t,v] <= R[t-1,m] + S[t-1,v]                                                          (1c)
//   S[t,v] + R[t,m] <= 1                   no value is kept and then made again
//   S[t,a] <= S[t,v],  S[t,a] + R[t,m] <= 1         for an alias a in the memory of v
//   For each k that may run in t, the budget covers the sum of: the bytes of N[t,v,j] for values
//   made before k, where j is the first reader from k on; of S[t,v] for values made later; of
//   R[t,k] for values that k writes; and its workspace.
//
// A write that takes over the memory of a read of the same size returns those bytes if N says that
// the read is not needed afterwards. It takes the first such memory that it may take, and no memory
// is taken twice. So the rows count what the simulator counts, except for rounding.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "lib/base/result.h"
#include "lib/planning/mip/mip.h"
#include "lib/problem/graph/joint_graph.h"
#include "lib/problem/runs/run_problem.h"

namespace ckplan {

struct StageSolution {
  MipStatus status = MipStatus::kStopped;
  std::optional<Runs> runs;  // The best plan found.
};

class StageProgram {
 public:
  // The graph and the problem must outlive this object.
  StageProgram(const JointGraph& graph, const RunProblem& problem);

  // Finds a plan of least time within the budget; by rounding, it may need slightly more. Errors
  // are those of SolveMip.
  Result<StageSolution> LeastTime(int64_t budget) const;
  // Finds a plan of least peak. That is at most `highest`, the peak of the graph's own order.
  Result<StageSolution> LeastPeak(int64_t highest) const;

 private:
  class Builder;

  Result<StageSolution> Solve(std::optional<int64_t> budget, int64_t highest) const;

  const JointGraph& graph_;
  const RunProblem& problem_;
  std::vector<std::vector<InPlaceWrite>> takeovers_;  // By operation.
  // The last stage in which each operation can be useful; at least its own stage.
  std::vector<int32_t> useful_until_;
  // By value: the last stage at whose start it can be useful.
  std::vector<int32_t> wanted_until_;
};

}  // namespace ckplan
