#include "lib/planner/schedule_meter.h"

namespace ckplan {

ScheduleMeter::ScheduleMeter(const TensorGraph& graph) : simulator_(graph) {}

ScheduleMeter::ScheduleMeter(const StepOfModel& step) : step_(step), run_simulator_(step.graph) {}

Simulation ScheduleMeter::Run(const Schedule& schedule) {
  if (!step_) return simulator_->Run(schedule).value();
  const std::vector<OpId> runs = RunsOf(step_->forward.step_of, schedule);
  const RunSimulation simulation = run_simulator_->Run(runs).value();
  return {simulation.peak, simulation.peak_step, simulation.cost - step_->graph.cost()};
}

Schedule InOrderOf(const StepOfModel& step, const Schedule& schedule) {
  const std::vector<Step>& step_of = step.forward.step_of;
  return ScheduleOf(step_of, PutOffUntilReadable(step.graph, RunsOf(step_of, schedule)));
}

}  // namespace ckplan
