// Measures the memory and time of a sequence of runs on the flat form of a joint graph.
//
// The peak equals that of lib/problem/schedule/simulate.h on graphs without aliases where each
// write has at most one in-place read. With several in-place reads it is that peak or more; the
// same holds with aliases, once they are recomputed (lib/problem/runs/run_problem.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lib/problem/runs/run_problem.h"
#include "lib/problem/schedule/replay.h"
#include "lib/problem/schedule/step_table.h"

namespace ckplan {

struct FlatSimulation {
  int64_t peak = 0;      // In bytes, with those of other micro-batches.
  size_t peak_step = 0;  // The first run that needs `peak`.
  int64_t cost = 0;      // The cost of all runs.
};

// Reuses its working memory between sequences.
class FlatSimulator {
 public:
  explicit FlatSimulator(const RunProblem& problem);  // Keeps a reference to `problem`.

  // Aborts if `runs` is not a plan: a run reads a value that is not in memory, an operation that
  // must not repeat runs twice, or a needed operation never runs. O(reads and writes of all runs).
  FlatSimulation Run(std::span<const OpId> runs);

  // Tells whether `runs` is a plan, as Run requires.
  bool IsValid(std::span<const OpId> runs);

 private:
  const RunProblem& problem_;
  const StepTable table_;
  Replay replay_;
  std::vector<int32_t> run_count_;
};

int64_t PeakOf(const RunProblem& problem, std::span<const OpId> runs);
int64_t CostOf(const RunProblem& problem, std::span<const OpId> runs);

// Tells whether a write of this operation may take over the memory of `value`, one of its reads.
bool MayBeOverwritten(const RunProblem& problem, int32_t op, int32_t value);
// Tells, for each value, whether a write of some operation may take over its memory.
std::vector<bool> OverwritableValues(const RunProblem& problem);

}  // namespace ckplan
