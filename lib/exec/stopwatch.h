// Measures how long the parts of a run take.
#pragma once

#include <chrono>
#include <vector>

#include "lib/exec/runner.h"

namespace ckplan {

struct NodeSeconds {
  double forward = 0;    // The first forward run.
  double recompute = 0;  // All other forward runs.
  double backward = 0;   // Including the additions of gradients.
};

// Waits for the device before and after each action that computes, so that asynchronous work is
// measured in full.
class Stopwatch final : public RunObserver {
 public:
  Stopwatch(Backend& backend, const StepGraph& step)
      : backend_(backend), nodes_(step.graph.nodes().size()) {}

  Result<Done> Before(const Action& action, const RunState& state) override;
  Result<Done> After(const Action& action, const RunState& state) override;

  const IdVector<NodeId, NodeSeconds>& nodes() const { return nodes_; }
  double total() const;  // Without the loss and without the time for managing memory.

 private:
  using Clock = std::chrono::steady_clock;

  Backend& backend_;
  IdVector<NodeId, NodeSeconds> nodes_;
  NodeId last_backward_;
  Clock::time_point began_;
};

double Median(std::vector<double> values);  // Returns 0 if there are no values.

struct StepSeconds {
  double total = 0;
  double recompute = 0;  // The part of `total` spent in recomputation.
};

// The sum of each node's median time over several runs of one schedule. Other activity on the
// machine slows some nodes in each run, but rarely the same ones, so this varies less than the
// median of whole steps.
StepSeconds TypicalSeconds(const std::vector<Stopwatch>& runs);

}  // namespace ckplan
