// Measures how long the parts of a run take, and how long a whole step takes. Both mark points in
// the device's work (lib/executor/backend/device_clock.h) and wait for nothing, so that an
// asynchronous device works as without them. They are read after the run.
#pragma once

#include <memory>
#include <vector>

#include "lib/executor/backend/device_clock.h"
#include "lib/executor/core/runner.h"

namespace ckplan {

struct NodeSeconds {
  double forward = 0;    // The first forward run.
  double recompute = 0;  // All other forward runs.
  double backward = 0;   // Including the additions of gradients.
};
using SecondsOfNodes = IdVector<NodeId, NodeSeconds>;

// Marks the beginning and the end of each action that computes.
class Stopwatch final : public RunObserver {
 public:
  Stopwatch(Backend& backend, const StepGraph& step)
      : clock_(backend.MakeClock()), nodes_(step.graph.nodes().size()) {}

  Result<Done> Before(const Action& action, const RunState& state) override;
  Result<Done> After(const Action& action, const RunState& state) override;

  SecondsOfNodes Read() const;

 private:
  struct Span {
    size_t begin = 0;
    size_t end = 0;
    NodeId node;
    double NodeSeconds::*part = nullptr;
  };

  std::unique_ptr<DeviceClock> clock_;
  size_t nodes_;
  std::vector<Span> spans_;
  NodeId last_backward_;
  size_t began_ = 0;
};

// Marks the beginning and the end of the step, and of the loss, which is not counted.
class StepTimer final : public RunObserver {
 public:
  explicit StepTimer(Backend& backend) : clock_(backend.MakeClock()) {}

  bool allows_fusion() const override { return true; }

  Result<Done> Before(const Action& action, const RunState& state) override;
  Result<Done> After(const Action& action, const RunState& state) override;

  double Seconds() const;

 private:
  std::unique_ptr<DeviceClock> clock_;
  std::vector<size_t> marks_;  // Beginnings and ends of what is counted, in turn.
};

double Median(std::vector<double> values);  // Returns 0 if there are no values.

struct StepSeconds {
  double total = 0;
  double recompute = 0;  // The part of `total` spent in recomputation.
};

// The sum of each node's median time over several runs of one schedule. Other activity on the
// machine slows some nodes in each run, but rarely the same ones, so this varies less than the
// median of whole steps.
StepSeconds TypicalSeconds(const std::vector<SecondsOfNodes>& runs);

}  // namespace ckplan
