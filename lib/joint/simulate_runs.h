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
  Cost cost;             // Of all runs.
};

class RunSimulator {
 public:
  explicit RunSimulator(const JointGraph& graph);  // Keeps a reference to `graph`.

  // kInvalidInput if the sequence is no plan of the graph: a read of a value that is not there, a
  // second run of an operation that may not repeat, a result or a parameter gradient that is never
  // made. Names the step and the value. O(reads and writes of all steps).
  Result<RunSimulation> Run(std::span<const OpId> runs);

 private:
  Result<Done> CheckRepeats(std::span<const OpId> runs);
  Result<Done> CheckNeeded() const;
  Error StepError(size_t step, OpId op, const std::string& fault) const;

  const JointGraph& graph_;
  const StepTable table_;
  Replay replay_;
  IdVector<OpId, int32_t> run_count_;  // Of the runs that CheckRepeats looked at last.
};

// The peak of the graph's own order with nothing run twice: what budgets in per cent refer to.
Bytes OwnOrderPeak(const JointGraph& graph);

}  // namespace ckplan
