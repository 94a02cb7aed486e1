// Measures schedules of a model's forward graph, where gradients of parameters arrive and where
// they do not.
#pragma once

#include <optional>
#include <vector>

#include "lib/graph/tensor_graph.h"
#include "lib/joint/expand.h"
#include "lib/joint/joint_graph.h"
#include "lib/joint/simulate_runs.h"
#include "lib/schedule/schedule.h"
#include "lib/schedule/simulate.h"

namespace ckplan {

// A joint graph that is the step of a model, and how it looks from the model's forward graph.
struct StepOfModel {
  const JointGraph& graph;
  const ForwardView& forward;
};

class ScheduleMeter {
 public:
  // Schedules are measured as they are. Keeps a reference.
  explicit ScheduleMeter(const TensorGraph& graph);
  // Schedules are measured as runs of the step. Keeps references.
  explicit ScheduleMeter(const StepOfModel& step);

  // `schedule` is a training step; for a step of a model it went through InOrderOf.
  Simulation Run(const Schedule& schedule);

 private:
  std::optional<Simulator> simulator_;
  std::optional<StepOfModel> step_;
  std::optional<RunSimulator> run_simulator_;  // Set with `step_`.
};

// The schedule with the backward steps put off that the step does not allow yet
// (PutOffUntilReadable, lib/joint/expand.h).
Schedule InOrderOf(const StepOfModel& step, const Schedule& schedule);

}  // namespace ckplan
