// Random kept sets and random schedules, for tests.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/base/rng.h"
#include "lib/problem/cost/link.h"
#include "lib/problem/graph/joint_graph.h"
#include "lib/problem/graph/tensor_graph.h"
#include "lib/problem/schedule/schedule.h"

namespace ckplan {

// Random schedules with transfers. Most are valid; each of the others breaks a rule. The same seed
// gives the same schedule on every platform.

// Returns a random plan with transfers of movable values. With a small probability, a step is
// misplaced or missing, or moves a value that must stay.
Schedule RandomMoves(Rng& rng, const JointGraph& graph);
// Inserts random transfers into the runs. If the runs are valid, the result is usually valid too;
// it is not if it loads a value that no later run reads.
Schedule WithRandomMoves(Rng& rng, const JointGraph& graph, const std::vector<OpId>& runs);

// Returns a link whose copies take about as long as the operations of a random graph.
Link RandomLink(Rng& rng);

// Draws a probability and keeps each node with it.
inline KeptSet RandomKeptSet(Rng& rng, const TensorGraph& graph) {
  KeptSet kept;
  const int percent = static_cast<int>(rng.Between(0, 100));
  for (size_t i = 0; i < graph.nodes().size(); ++i) kept.is_kept.push_back(rng.Chance(percent));
  return kept;
}

// Generates training steps in random valid orders (lib/problem/schedule/schedule.h) with random
// recomputation.
class RandomSchedule {
 public:
  // Drops each tensor after each step with a probability of `drop_percent` %, and recomputes it
  // when a step reads it.
  static Schedule Make(Rng& rng, const TensorGraph& graph, int drop_percent) {
    return RandomSchedule(rng, graph, drop_percent).Run();
  }

 private:
  RandomSchedule(Rng& rng, const TensorGraph& graph, int drop_percent)
      : rng_(rng),
        graph_(graph),
        drop_percent_(drop_percent),
        precedence_(graph),
        has_run_(graph.nodes().size()),
        has_run_backward_(graph.nodes().size()),
        is_in_memory_(graph.tensors().size()) {}

  Schedule Run() {
    const size_t steps = 2 * graph_.nodes().size() + 1;
    for (size_t done = 0; done < steps; ++done) {
      std::vector<Step> ready;
      for (const NodeId id : graph_.nodes().ids()) {
        if (!has_run_[id] && AllMade(graph_.node(id).inputs)) ready.push_back(Step::Forward(id));
        if (CanRunBackward(id)) ready.push_back(Step::Backward(id));
      }
      if (!has_loss_ && AllMade(graph_.outputs())) ready.push_back(Step::Loss());
      Append(ready[static_cast<size_t>(rng_.Between(0, static_cast<int64_t>(ready.size()) - 1))]);
      for (const TensorId id : graph_.tensors().ids()) {
        if (is_in_memory_[id] && rng_.Chance(drop_percent_)) is_in_memory_[id] = false;
      }
    }
    return std::move(schedule_);
  }

  bool AllMade(const std::vector<TensorId>& tensors) const {
    for (const TensorId id : tensors) {
      if (!graph_.is_input(id) && !has_run_[graph_.tensor(id).producer]) return false;
    }
    return true;
  }

  bool CanRunBackward(NodeId id) const {
    if (!has_loss_ || !has_run_[id] || has_run_backward_[id]) return false;
    for (const NodeId first : precedence_.after[id]) {
      if (!has_run_backward_[first]) return false;
    }
    return AllMade(graph_.node(id).backward_reads);
  }

  void Append(const Step& step) {
    if (step.kind == StepKind::kForward) return Forward(step.node());
    if (step.kind == StepKind::kLoss) {
      Provide(graph_.outputs());
      has_loss_ = true;
    } else {
      Provide(graph_.node(step.node()).backward_reads);
      has_run_backward_[step.node()] = true;
    }
    schedule_.steps.push_back(step);
  }

  void Forward(NodeId id) {
    Provide(graph_.node(id).inputs);
    has_run_[id] = true;
    schedule_.steps.push_back(Step::Forward(id));
    for (const TensorId output : graph_.node(id).outputs) is_in_memory_[output] = true;
  }

  void Provide(const std::vector<TensorId>& tensors) {
    for (const TensorId id : tensors) {
      if (!graph_.is_input(id) && !is_in_memory_[id]) Forward(graph_.tensor(id).producer);
    }
  }

  Rng& rng_;
  const TensorGraph& graph_;
  const int drop_percent_;
  const BackwardPrecedence precedence_;
  IdVector<NodeId, bool> has_run_;
  IdVector<NodeId, bool> has_run_backward_;
  IdVector<TensorId, bool> is_in_memory_;
  bool has_loss_ = false;
  Schedule schedule_;
};

}  // namespace ckplan
