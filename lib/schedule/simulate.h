// The simulator measures: how much memory a schedule needs at its worst step, and how much forward
// work it repeats. Exact to the byte; docs/algorithms.md gives the model in words. Whether a plan
// is right is judged elsewhere, by lib/plan/check.h, which does not use the simulator.
//
// Memory while a step runs = live tensors before it + what it allocates + its workspace:
//   forward(n)   allocates the outputs of n, unless one is written in place of an equally large
//                input that dies here
//   loss         allocates the gradients of the graph's outputs
//   backward(n)  allocates gradients, see gradients.h
// A version of a tensor lives from the forward step that makes it to its last read.
// Of each other micro-batch that is under way, what is in memory behind the loss, its gradients
// aside, is there throughout.
// Constants (parameters, inputs, ...) are not in these figures.
//
// Cost: O(reads of all steps); the reads of a graph are laid out flat once, in the constructor, so
// that the many schedules of a budget search are replayed at more than 10 million steps a second.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lib/base/result.h"
#include "lib/base/units.h"
#include "lib/graph/tensor_graph.h"
#include "lib/schedule/backward_order.h"
#include "lib/schedule/schedule.h"

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
  // The lists of all nodes in one array; those of node n stand in [starts[n], starts[n + 1]).
  struct Lists {
    std::vector<int32_t> items;
    std::vector<int32_t> starts = {0};
    std::span<const int32_t> of(size_t node) const {
      const auto start = static_cast<size_t>(starts[node]);
      return {items.data() + start, static_cast<size_t>(starts[node + 1]) - start};
    }
    void Append(const std::vector<TensorId>& list, const TensorGraph& graph, bool with_inputs);
  };
  // Gradient bytes while and after each node's backward runs, for one order of them.
  struct GradientProfile {
    std::vector<NodeId> order;
    Bytes after_loss;
    IdVector<NodeId, Bytes> during;
    IdVector<NodeId, Bytes> after;
  };

  Result<Done> CheckShape(const Schedule& schedule);
  Result<Done> CheckFreeOrder(const Schedule& schedule);
  void UpdateProfile();
  Result<Simulation> RunLiveness(const Schedule& schedule);
  Result<Simulation> RunExplicit(const Schedule& schedule);
  Simulation Measured(Bytes peak, size_t step, Bytes saved, Cost forward_cost) const;
  int64_t ReusedBytes(const Node& node, int32_t step) const;
  int64_t GradientsAfter(size_t backward_steps) const;
  Error AbsentTensor(const Schedule& schedule, int32_t tensor) const;
  Error StepError(const Schedule& schedule, size_t step, const std::string& fault) const;

  const TensorGraph& graph_;
  std::vector<int64_t> tensor_bytes_;
  Lists forward_reads_;   // Without inputs of the graph: they are always there.
  Lists backward_reads_;  // Without inputs of the graph.
  Lists outputs_;
  std::vector<int32_t> loss_reads_;
  std::vector<int64_t> output_bytes_;  // All outputs of a node together.
  GradientProfile profile_;
  std::optional<BackwardPrecedence> precedence_;  // Once a schedule is not mirrored.
  // Working memory of Run, kept so that a search allocates nothing.
  std::vector<NodeId> order_;           // Of the first forward runs.
  std::vector<NodeId> backward_order_;  // Of the backward steps.
  std::vector<int32_t> runs_;
  std::vector<int32_t> last_read_;
};

}  // namespace ckplan
