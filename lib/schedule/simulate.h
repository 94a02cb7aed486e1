// The simulator measures how much memory a schedule needs at its worst step, exact to the byte, and
// how much forward work it repeats; docs/algorithms.md describes the model in words. The checker
// (lib/plan/check.h), which does not use the simulator, judges whether a plan is right.
//
// Memory while a step runs = live tensors before it + what it allocates + its workspace:
//   forward(n)   allocates the outputs of n, unless one is written in place of an equally large
//                input that dies here
//   loss         allocates the gradients of the graph's outputs
//   backward(n)  allocates gradients, see gradients.h
// A version of a tensor lives from the forward step that makes it to its last read (replay.h).
// Each other micro-batch under way adds, during the whole schedule, what it has in memory after the
// loss without its gradients. Constants (parameters, inputs, ...) are not in these figures.
//
// Cost: O(reads and writes of all steps). The constructor lays the graph out flat once, so the many
// schedules of a budget search are replayed at more than 10 million steps a second.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/result.h"
#include "lib/base/units.h"
#include "lib/graph/tensor_graph.h"
#include "lib/schedule/backward_order.h"
#include "lib/schedule/replay.h"
#include "lib/schedule/schedule.h"
#include "lib/schedule/step_table.h"

namespace ckplan {

struct Simulation {
  Bytes peak;
  size_t peak_step = 0;                  // The first step that needs `peak`.
  Cost overhead;                         // Forward cost beyond one run of each node.
  Bytes other_micro_batches = Bytes(0);  // Part of `peak`.
};

// The peak of keeping everything in the graph's own order.
Bytes KeepAllPeak(const TensorGraph& graph);

class Simulator {
 public:
  explicit Simulator(const TensorGraph& graph);  // Keeps a reference to `graph`.

  // Returns kInvalidInput if the schedule is not a valid training step of the graph: a node that
  // never runs forward, a read of an absent tensor, a missing or doubled loss or backward, a
  // backward in an order that backward_order.h does not allow, or memory that is still live at the
  // end. The error names the step and the tensor.
  Result<Simulation> Run(const Schedule& schedule);

 private:
  // Gradient bytes by kind of step (step_table.h) for one order of the backward steps: the maximum
  // while the step runs, and the amount after it. Only the loss and backward steps have any.
  struct GradientProfile {
    std::vector<NodeId> order;
    std::vector<Bytes> during;
    std::vector<Bytes> after;
  };
  class Meter;

  Result<Done> CheckShape(const Schedule& schedule);
  Result<Done> CheckFreeOrder(const Schedule& schedule);
  void UpdateProfile();
  Error FaultOf(const Schedule& schedule, const ReplayFault& fault) const;
  Error StepError(const Schedule& schedule, size_t step, const std::string& fault) const;

  const TensorGraph& graph_;
  const StepTable table_;
  Replay replay_;
  GradientProfile profile_;
  std::optional<BackwardPrecedence> precedence_;  // Set when a schedule is not mirrored.
  // Working memory of Run, reused from one schedule to the next.
  std::vector<NodeId> order_;           // The order of the first forward runs.
  std::vector<NodeId> backward_order_;  // The order of the backward steps.
  std::vector<int32_t> runs_;
};

}  // namespace ckplan
