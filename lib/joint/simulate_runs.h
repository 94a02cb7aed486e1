// The memory and the time of a sequence of runs: see lib/schedule/replay.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lib/base/result.h"
#include "lib/base/units.h"
#include "lib/joint/joint_graph.h"
#include "lib/schedule/replay.h"
#include "lib/schedule/step_table.h"

namespace ckplan {

struct RunSimulation {
  Bytes peak;
  size_t peak_step = 0;  // The first run that needs `peak`.
  Cost cost;             // The cost of all runs.
};

class RunSimulator {
 public:
  explicit RunSimulator(const JointGraph& graph);  // Keeps a reference to `graph`.

  // Returns kInvalidInput if the sequence is not a plan of the graph: a read of a value that is not
  // in memory, a second run of an operation that may not repeat, or a result or parameter gradient
  // that is never made. The error names the step and the value. O(reads and writes of all steps).
  Result<RunSimulation> Run(std::span<const OpId> runs);

 private:
  Result<Done> CheckRepeats(std::span<const OpId> runs);
  Result<Done> CheckNeeded() const;
  Error StepError(size_t step, OpId op, const std::string& fault) const;

  const JointGraph& graph_;
  const StepTable table_;
  Replay replay_;
  IdVector<OpId, int32_t> run_count_;  // For the runs that CheckRepeats visited last.
};

// The peak of the graph's own order with nothing run twice, which budgets in percent refer to.
Bytes OwnOrderPeak(const JointGraph& graph);

}  // namespace ckplan
