// Measures each node's time and workspace, for the cost model file:costs.json.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lib/base/result.h"
#include "lib/executor/backend/backend.h"
#include "lib/executor/backend/device_memory.h"
#include "lib/executor/core/constant_store.h"
#include "lib/executor/core/loss.h"
#include "lib/executor/core/runner.h"
#include "lib/executor/core/step_operators.h"
#include "lib/files/model/step_graph.h"

namespace ckplan {

// Times the parts of a run, and a whole step. The observers mark points in the device's work
// (lib/executor/backend/device_memory.h) without waiting, so that an asynchronous device works
// undisturbed. Read them after the run.
struct NodeSeconds {
  double forward = 0;    // The first forward run.
  double recompute = 0;  // All later forward runs.
  double backward = 0;   // Includes adding gradients.
};
using SecondsOfNodes = IdVector<NodeId, NodeSeconds>;

// Marks the beginning and end of each action that computes. Operators run fused, as in an
// undisturbed step, unless `fuses` is false. A fused group's time is then that of its first and
// last operator.
class Stopwatch final : public RunObserver {
 public:
  Stopwatch(Backend& backend, const StepGraph& step, bool fuses = true)
      : clock_(backend.MakeClock()), nodes_(step.graph.nodes().size()), fuses_(fuses) {}

  bool allows_fusion() const override { return fuses_; }

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
  bool fuses_;
  std::vector<Span> spans_;
  NodeId last_backward_;
  size_t began_ = 0;
};

// Marks the beginning and end of the step, and of the loss, which is excluded.
class StepTimer final : public RunObserver {
 public:
  explicit StepTimer(Backend& backend) : clock_(backend.MakeClock()) {}

  bool allows_fusion() const override { return true; }

  Result<Done> Before(const Action& action, const RunState& state) override;
  Result<Done> After(const Action& action, const RunState& state) override;

  double Seconds() const;

 private:
  std::unique_ptr<DeviceClock> clock_;
  std::vector<size_t> marks_;  // Alternating beginnings and ends of the timed intervals.
};

double Median(std::vector<double> values);  // Returns 0 for an empty vector.

struct StepSeconds {
  double total = 0;
  double recompute = 0;  // The part of `total` spent on recomputation.
};

// Adds up each node's median time over several runs of one schedule. Other load on the machine
// slows some nodes in each run, but rarely the same ones, so this varies less than the median time
// of whole steps.
StepSeconds TypicalSeconds(const std::vector<SecondsOfNodes>& runs);

struct ProfiledNode {
  std::string name;
  double forward_seconds = 0;  // This and backward_seconds are medians over runs.
  double backward_seconds = 0;
  OpWorkspace workspace;
};

struct ProfileOptions {
  uint64_t seed = 0;
  int runs = 5;  // Measured runs, after one warm-up run.
};

// Runs whole steps that keep everything, in the model's order, so that each node finds the caches
// as in training. Where operators run fused, their times add up to that of the fused kernel, in
// proportion to what they take one by one. kInfeasible: the device has too little memory.
Result<std::vector<ProfiledNode>> ProfileNodes(Backend& backend, const StepGraph& step,
                                               const StepOperators& operators,
                                               ConstantStore& constants,
                                               const ProfileOptions& options);

}  // namespace ckplan
