#include "lib/executor/core/train.h"

#include "lib/executor/core/device_block.h"
#include "lib/executor/core/runner.h"
#include "lib/executor/core/stopwatch.h"

namespace ckplan {

Result<std::vector<TrainedStep>> Train(Backend& backend, const StepGraph& step,
                                       const StepOperators& operators, ConstantStore& constants,
                                       const PlacedProgram& plan, const TrainOptions& options,
                                       const std::function<void(const TrainedStep&)>& after_step) {
  CKPLAN_RETURN_IF_ERROR(RequireLoss(options.loss, step));
  CKPLAN_ASSIGN_OR_RETURN(const auto arena, ArenaFor(backend, plan, /*poisons=*/false));
  CKPLAN_ASSIGN_OR_RETURN(
      const DeviceBlock workspace,
      DeviceBlock::Allocate(backend, plan.has_workspaces ? Bytes(0) : LargestWorkspace(operators)));
  const Loss loss(options.loss, options.seed);
  Runner runner(backend, step, operators, constants, loss, options.seed, workspace.get());
  std::vector<TrainedStep> steps;
  for (int i = 0; i < options.steps; ++i) {
    StepTimer timer(backend);
    CKPLAN_ASSIGN_OR_RETURN(const double value,
                            runner.Run(plan.program, *arena, &timer, static_cast<uint64_t>(i)));
    steps.push_back({value, timer.Seconds()});
    CKPLAN_RETURN_IF_ERROR(constants.Descend(static_cast<float>(options.learning_rate)));
    after_step(steps.back());
  }
  return steps;
}

}  // namespace ckplan
