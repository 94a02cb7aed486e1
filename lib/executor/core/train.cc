#include "lib/executor/core/train.h"

#include <string_view>
#include <utility>
#include <vector>

#include "lib/executor/core/buffer_memory.h"
#include "lib/executor/core/constant_store.h"
#include "lib/executor/core/profile.h"
#include "lib/executor/core/runner.h"
#include "lib/files/model/weights.h"

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

namespace {

class Snapshot final : public RunObserver {
 public:
  Snapshot(Backend& backend, const StepGraph& step) : backend_(backend), step_(step) {}

  void Add(std::string_view kind, const std::string& name, const Operand& operand,
           const void* contents) {
    bytes_ += operand.bytes();
    if (bytes_ > kMaxTensorFileBytes) return;
    std::string bytes(static_cast<size_t>(operand.bytes()), '\0');
    backend_.Download(bytes.data(), contents, operand.bytes());
    tensors_.push_back(
        {std::string(kind) + "/" + name, operand.type, operand.dims, std::move(bytes)});
  }

  Result<Done> Before(const Action&, const RunState&) override { return Done{}; }
  Result<Done> After(const Action& action, const RunState& state) override {
    if (action.kind != ActionKind::kLoss) return Done{};
    const auto position = static_cast<size_t>(action.position);
    const TensorId tensor = step_.graph.outputs()[position];
    const std::string& name = step_.graph.tensor(tensor).name;
    const auto contents = [&state](int32_t buffer) {
      return state.address[static_cast<size_t>(buffer)];
    };
    Add("output", name, step_.tensors[tensor], contents(state.program.output_buffers[position]));
    Add("output_gradient", name, step_.tensors[tensor], contents(action.buffer));
    return Done{};
  }

  Result<std::string> Finish() && {
    if (bytes_ > kMaxTensorFileBytes) {
      return MakeError(ErrorCode::kUnsupported,
                       "the tensors of this step exceed the ONNX limit of 2 GB; use a "
                       "smaller batch or model");
    }
    return TensorFileBytes("training_step", std::move(tensors_));
  }

 private:
  Backend& backend_;
  const StepGraph& step_;
  std::vector<NamedTensor> tensors_;
  int64_t bytes_ = 0;
};

}  // namespace

Result<std::string> TakeSnapshot(Backend& backend, const StepGraph& step,
                                 const StepOperators& operators, ConstantStore& constants,
                                 const PlacedProgram& plan, LossKind loss, uint64_t seed) {
  CKPLAN_RETURN_IF_ERROR(RequireLoss(loss, step));
  CKPLAN_ASSIGN_OR_RETURN(
      const DeviceBlock workspace,
      DeviceBlock::Allocate(backend, plan.has_workspaces ? Bytes(0) : LargestWorkspace(operators)));
  CKPLAN_ASSIGN_OR_RETURN(const auto arena, ArenaFor(backend, plan, /*poisons=*/false));
  const Loss descended(loss, seed);
  Runner runner(backend, step, operators, constants, descended, seed, workspace.get());
  Snapshot snapshot(backend, step);
  for (const StepInput& input : step.inputs) {
    snapshot.Add("input", input.name, input.operand, constants.input(input.tensor));
  }
  for (const ConstantId leaf : constants.trained()) {
    const StepConstant& constant = step.constants[leaf];
    snapshot.Add("parameter", constant.name, constant.operand, constants.constant(leaf));
  }
  CKPLAN_RETURN_IF_ERROR(runner.Run(plan.program, *arena, &snapshot));
  for (const ConstantId leaf : constants.trained()) {
    const StepConstant& constant = step.constants[leaf];
    snapshot.Add("parameter_gradient", constant.name, constant.operand, constants.gradient(leaf));
  }
  return std::move(snapshot).Finish();
}

}  // namespace ckplan
