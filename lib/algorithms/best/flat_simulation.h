// The memory and the time of a sequence of runs, on the flat form of a joint graph.
//
// The peak is that of lib/joint/simulate_runs.h on a graph without aliases whose writes have one
// in-place read each at the most. With several in-place reads it is that peak or more; with
// aliases, once they are made again (rerun_aliases.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lib/joint/run_problem.h"
#include "lib/schedule/replay.h"
#include "lib/schedule/step_table.h"

namespace ckplan {

struct FlatSimulation {
  int64_t peak = 0;      // Bytes.
  size_t peak_step = 0;  // The first run that needs `peak`.
  int64_t cost = 0;      // Of all runs.
};

// Keeps its working memory from one sequence to the next.
class FlatSimulator {
 public:
  explicit FlatSimulator(const RunProblem& problem);  // Keeps a reference to `problem`.

  // Stops the program if `runs` is no plan: if a run reads what is not in memory, if what may not
  // repeat runs twice, or if an operation that is needed never runs. O(reads and writes of all
  // runs).
  FlatSimulation Run(std::span<const OpId> runs);

  // Whether `runs` is a plan: what Run takes.
  bool IsValid(std::span<const OpId> runs);

 private:
  const RunProblem& problem_;
  const StepTable table_;
  Replay replay_;
  std::vector<int32_t> run_count_;
};

int64_t PeakOf(const RunProblem& problem, std::span<const OpId> runs);
int64_t CostOf(const RunProblem& problem, std::span<const OpId> runs);

// Whether `write` of this operation may take over the memory of one of its reads, `value`.
bool MayBeTakenOver(const RunProblem& problem, int32_t op, int32_t value);

}  // namespace ckplan
