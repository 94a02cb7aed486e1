// The mixed-integer program of checkmate.h, and plans from its solutions.
//
// Rows, with R[t,t] = 1, and N[t,v,j] at least R[t,r] for the j-th reader r of v in stage t and for
// each later one, and at least S[t+1,v]:
//
//   R[t,i] <= R[t,m] + S[t,v]              i reads v, which m makes                        (1b)
//   S[t,v] <= R[t-1,m] + S[t-1,v]                                                          (1c)
//   S[t,v] + R[t,m] <= 1                   what is made again was not kept for nothing
//   S[t,a] <= S[t,v],  S[t,a] + R[t,m] <= 1         for an alias a in the memory of v
//   at each k that may run in t: the bytes of N[t,v,j] for what is made before k, where j is the
//   first reader from k on, of S[t,v] for what is made later, of R[t,k] for what k writes, and its
//   workspace, are within the budget
//
// A write that takes over the memory of a read of the same size gives those bytes back where N says
// that nobody wants the read afterwards. It takes the first such memory that is its to take, and no
// memory is taken twice. So what the rows count is what the simulator does, but for rounding.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "lib/base/result.h"
#include "lib/joint/joint_graph.h"
#include "lib/joint/run_problem.h"
#include "lib/mip/mip.h"

namespace ckplan {

struct StageSolution {
  MipStatus status = MipStatus::kStopped;
  std::optional<Runs> runs;  // The best that was found.
};

class StageProgram {
 public:
  // Both outlive this.
  StageProgram(const JointGraph& graph, const RunProblem& problem);

  // Plans of least time within the budget; of rounding, a plan may need slightly more. Errors are
  // those of SolveMip.
  Result<StageSolution> LeastTime(int64_t budget) const;
  // Plans of least peak, which is at most that of the graph's own order, `highest`.
  Result<StageSolution> LeastPeak(int64_t highest) const;

 private:
  class Builder;

  Result<StageSolution> Solve(std::optional<int64_t> budget, int64_t highest) const;

  const JointGraph& graph_;
  const RunProblem& problem_;
  std::vector<std::vector<InPlaceWrite>> takeovers_;  // By operation.
  // The last stage in which each operation may be of use; not below its own.
  std::vector<int32_t> useful_until_;
  // By value: the last stage at whose start it may be of use.
  std::vector<int32_t> wanted_until_;
};

}  // namespace ckplan
