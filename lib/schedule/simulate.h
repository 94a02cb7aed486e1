// The simulator measures: how much memory a schedule needs at its worst step, and how much forward
// work it repeats. Exact to the byte; docs/algorithms.md gives the model in words. Whether a plan
// is right is judged elsewhere, by lib/plan/check.h, which does not use the simulator.
//
// Memory while a step runs = live tensors before it + what it allocates + its workspace:
//   forward(n)   allocates the outputs of n, unless one is written in place of an equally large
//                input that dies here
//   loss         allocates the gradients of the graph's outputs
//   backward(n)  allocates gradients, see gradients.h
// A version of a tensor lives from the forward step that makes it to its last read (replay.h).
// Of each other micro-batch that is under way, what is in memory behind the loss, its gradients
// aside, is there throughout.
// Constants (parameters, inputs, ...) are not in these figures.
//
// Cost: O(reads and writes of all steps); a graph is laid out flat once, in the constructor, so
// that the many schedules of a budget search are replayed at more than 10 million steps a second.
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
  Bytes other_micro_batches = Bytes(0);  // Of `peak`.
};

// The peak of keeping all in the graph's own order.
Bytes KeepAllPeak(const TensorGraph& graph);

class Simulator {
 public:
  explicit Simulator(const TensorGraph& graph);  // Keeps a reference to `graph`.

  // kInvalidInput if the schedule is no valid training step of the graph: a node that never runs
  // forward, a read of an absent tensor, a loss or backward missing, doubled or in an order that
  // backward_order.h does not allow, or memory that is still live at the end. Names the step and
  // the tensor.
  Result<Simulation> Run(const Schedule& schedule);

 private:
  // Gradient bytes by kind of step (step_table.h), for one order of the backward steps: at the most
  // while it runs, and behind it. Of the loss and backward.
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
  std::optional<BackwardPrecedence> precedence_;  // Once a schedule is not mirrored.
  // Working memory of Run, kept from one schedule to the next.
  std::vector<NodeId> order_;           // Of the first forward runs.
  std::vector<NodeId> backward_order_;  // Of the backward steps.
  std::vector<int32_t> runs_;
};

}  // namespace ckplan
