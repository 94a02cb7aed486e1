// How long the parts of a run take.
#pragma once

#include <chrono>
#include <vector>

#include "lib/exec/runner.h"

namespace ckplan {

struct NodeSeconds {
  double forward = 0;    // Of the first forward run.
  double recompute = 0;  // Of all others.
  double backward = 0;   // Additions of gradients included.
};

// Waits for the device before and after each action that computes, so what it measures is never
// less than what the device does, and on a processor the same.
class Stopwatch final : public RunObserver {
 public:
  Stopwatch(Backend& backend, const StepGraph& step)
      : backend_(backend), nodes_(step.graph.nodes().size()) {}

  Result<Done> Before(const Action& action, const RunState& state) override;
  Result<Done> After(const Action& action, const RunState& state) override;

  const IdVector<NodeId, NodeSeconds>& nodes() const { return nodes_; }
  double total() const;  // Without the loss and without the memory's own time.

 private:
  using Clock = std::chrono::steady_clock;

  Backend& backend_;
  IdVector<NodeId, NodeSeconds> nodes_;
  NodeId last_backward_;
  Clock::time_point began_;
};

double Median(std::vector<double> values);  // 0 of none.

struct StepSeconds {
  double total = 0;
  double recompute = 0;  // Of that.
};

// A step that takes at each node what is the median there over several runs of one schedule: what
// else happens on the machine hits some nodes in each run, but rarely the same.
StepSeconds TypicalSeconds(const std::vector<Stopwatch>& runs);

}  // namespace ckplan
