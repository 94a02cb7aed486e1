// The simulator measures how much memory a schedule needs at its worst step, exact to the byte, and
// how much work it repeats; docs/algorithms.md describes the model in words. The checker
// (lib/planning/plan/check.h), which does not use the simulator, judges whether a plan is right.
//
// Memory while a step runs = live tensors before it + what it allocates + its workspace:
//   run, forward(n)  allocates what it writes, unless that takes over the memory of an equally
//                    large tensor that dies here (replay.h)
//   loss             allocates the gradients of the graph's outputs
//   backward(n)      allocates gradients, see gradients.h
// A version of a tensor lives from the step that makes it to its last read (replay.h). Each other
// micro-batch in flight adds, during the whole schedule, what it has in memory after the loss
// without its gradients. Constants (parameters, inputs, ...) are not in these figures. Schedules of
// joint graphs may move values to the host and back, as transfers.h says.
//
// Cost: O(reads and writes of all steps). The constructor lays the graph out flat once, so the many
// schedules of a budget search are replayed at more than 10 million steps a second.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lib/base/result.h"
#include "lib/base/units.h"
#include "lib/problem/schedule/replay.h"
#include "lib/problem/schedule/schedule.h"
#include "lib/problem/schedule/step_table.h"
#include "lib/problem/schedule/training_step.h"

namespace ckplan {

struct Simulation {
  Bytes peak;
  size_t peak_step = 0;  // The first step that needs `peak`.
  Cost cost;             // The cost of all runs; for a forward graph, of all forward runs.
  // The time beyond one run of each node or operation: `cost` and `stall` less that.
  Cost overhead;
  Bytes other_micro_batches = Bytes(0);  // Part of `peak`.
  // Zero without transfers.
  Cost stall = Cost(0);  // The time that runs and drops wait for copies.
  Bytes host_peak = Bytes(0);
  Bytes transferred = Bytes(0);  // Bytes of all copies, to the host and back.
};

// The peak of keeping everything in the graph's own order, which budgets in percent refer to.
Bytes KeepAllPeak(const TrainingStep& step);

class Simulator {
 public:
  explicit Simulator(const TrainingStep& step);  // Refers to the step's graphs.

  // Returns kInvalidInput if the schedule is not a training step of the graph: a step that the
  // graph does not have or that must not run twice, a read of an absent tensor, something needed
  // that never runs, a backward in an order that schedule.h does not allow, memory that is
  // still live at the end, or a transfer against the rules of transfers.h. The error names the step
  // and the tensor.
  Result<Simulation> Run(const Schedule& schedule);
  // Measures these runs of a joint graph.
  Result<Simulation> Run(std::span<const OpId> runs) { return Run(ScheduleOfRuns(runs)); }

 private:
  // Gradient bytes by kind of step (step_table.h) for one order of the backward steps: the maximum
  // while the step runs, and the amount after it. Only the loss and backward steps have any.
  struct GradientProfile {
    std::vector<NodeId> order;
    std::vector<Bytes> during;
    std::vector<Bytes> after;
    bool is_held = false;  // Whether nothing is released here, since frees say when.
  };
  class ForwardMeter;

  Result<Done> CheckRuns(const Schedule& schedule);
  Result<Done> CheckTransfer(const Schedule& schedule, size_t k) const;
  Simulation MeasureTransfers();
  Result<Done> CheckNeeded() const;
  std::string NameOfKind(size_t kind) const;
  Result<Done> CheckOrder(const Schedule& schedule);
  Result<Done> CheckFreeOrder(const Schedule& schedule);
  Result<Done> CheckGradientFrees(const Schedule& schedule);
  void UpdateProfile(FreePolicy frees);
  Error FaultOf(const Schedule& schedule, const ReplayFault& fault) const;
  Error StepError(const Schedule& schedule, size_t step, const std::string& fault) const;

  const TrainingStep of_;
  StepTable table_;  // Has transfers after the first schedule that has any.
  Replay replay_;
  GradientProfile profile_;
  std::optional<BackwardPrecedence> precedence_;  // Set when a schedule is not mirrored.
  // Working memory of Run, reused from one schedule to the next.
  std::vector<NodeId> order_;           // The order of the first forward runs.
  std::vector<NodeId> backward_order_;  // The order of the backward steps.
  std::vector<int32_t> runs_;           // By kind of step.
};

}  // namespace ckplan
