// The simulator measures a schedule's peak memory, exact to the byte, and the work that it repeats;
// docs/algorithms.md describes the model. The checker (lib/planning/plan/check.h) verifies plans
// without using the simulator.
//
// Memory while a step runs = live tensors before it + its allocations + its workspace:
//   run, forward(n)  allocates its writes, except those that reuse the memory of a tensor of the
//   same
//                    size that dies here (replay.h)
//   loss             allocates the gradients of the graph's outputs
//   backward(n)      allocates gradients, see gradients.h
// A version of a tensor lives from the step that creates it to its last read (replay.h). Each other
// micro-batch in flight adds its memory after the loss, without gradients, to the whole schedule.
// Constants (parameters, inputs, ...) are not included. Schedules of joint graphs may move values
// to the host and back (transfers.h).
//
// Cost: O(reads and writes of all steps). The constructor builds flat tables once, so that a budget
// search can replay more than 10 million steps a second.
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
  // The time in addition to one run of each node or operation, including `stall`.
  Cost overhead;
  Bytes other_micro_batches = Bytes(0);  // Part of `peak`.
  // Zero without transfers.
  Cost stall = Cost(0);  // The time that runs and drops wait for copies.
  Bytes host_peak = Bytes(0);
  Bytes transferred = Bytes(0);  // Bytes of all copies, to the host and back.
};

// Returns the keep-all peak in the graph's own order, to which budgets in percent refer.
Bytes KeepAllPeak(const TrainingStep& step);

class Simulator {
 public:
  explicit Simulator(const TrainingStep& step);  // Refers to the step's graphs.

  // kInvalidInput: the schedule is not a training step of the graph. It has a step that the graph
  // does not have, a step that must not run twice, a read of an absent tensor, an order of backward
  // steps that schedule.h does not allow, or a transfer against the rules of transfers.h, or it
  // lacks a required step or free. The error names the step and the tensor.
  Result<Simulation> Run(const Schedule& schedule);
  // Measures these runs of a joint graph.
  Result<Simulation> Run(std::span<const OpId> runs) { return Run(ScheduleOfRuns(runs)); }

 private:
  // The gradient bytes by kind of step (step_table.h) for one order of backward steps: the maximum
  // during the step, and the amount after it.
  struct GradientProfile {
    std::vector<NodeId> order;
    std::vector<Bytes> during;
    std::vector<Bytes> after;
    bool is_held = false;  // Only frees release gradients.
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
  StepTable table_;  // Has transfers after the first schedule with transfers.
  Replay replay_;
  GradientProfile profile_;
  std::optional<BackwardPrecedence> precedence_;  // Set by a schedule that is not mirrored.
  // The working memory of Run, reused between schedules.
  std::vector<NodeId> order_;           // The order of the first forward runs.
  std::vector<NodeId> backward_order_;  // The order of the backward steps.
  std::vector<int32_t> runs_;           // By kind of step.
};

}  // namespace ckplan
