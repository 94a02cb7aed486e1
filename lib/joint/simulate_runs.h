// The memory and the time of a sequence of runs: see run_replay.h.
#pragma once

#include <span>

#include "lib/base/result.h"
#include "lib/base/units.h"
#include "lib/joint/joint_graph.h"
#include "lib/joint/run_replay.h"

namespace ckplan {

struct RunSimulation {
  Bytes peak;
  size_t peak_step = 0;  // The first run that needs `peak`.
  Cost cost;             // Of all runs.
};

class RunSimulator {
 public:
  explicit RunSimulator(const JointGraph& graph);  // Keeps a reference to `graph`.

  // kInvalidInput: see RunReplay::Run.
  Result<RunSimulation> Run(std::span<const OpId> runs);

 private:
  const JointGraph& graph_;
  RunReplay replay_;
};

// The peak of the graph's own order with nothing run twice: what budgets in per cent refer to.
Bytes OwnOrderPeak(const JointGraph& graph);

}  // namespace ckplan
