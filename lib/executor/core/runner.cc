#include "lib/executor/core/runner.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/base/check.h"
#include "lib/executor/core/loss.h"

namespace ckplan {

namespace {

const char* VerbOf(ActionKind kind) {
  switch (kind) {
    case ActionKind::kForward:
      return "forward of";
    case ActionKind::kBackward:
      return "backward of";
    default:
      return "around";
  }
}

}  // namespace

std::string StepText(const StepGraph& step, const Program& program, const Action& action) {
  if (action.kind == ActionKind::kLoss) return fmt::format("step {} (the loss)", action.step);
  if (action.call >= 0) {
    const NodeId node = program.calls[static_cast<size_t>(action.call)].node;
    return fmt::format("step {} ({} \"{}\")", action.step, VerbOf(action.kind),
                       step.graph.node(node).name);
  }
  return fmt::format("step {}", action.step);
}

std::string BufferText(const StepGraph& step, const Program& program, int32_t buffer) {
  const ProgramBuffer& about = program.buffers[static_cast<size_t>(buffer)];
  switch (about.kind) {
    case BufferKind::kTensor:
      return fmt::format("\"{}\"", step.graph.tensor(about.tensor).name);
    case BufferKind::kGradient:
      return fmt::format("the gradient of \"{}\"", step.graph.tensor(about.tensor).name);
    case BufferKind::kWorkspace:
      return fmt::format("the workspace of \"{}\"", step.graph.node(about.node).name);
  }
  return "";
}

Runner::Runner(Backend& backend, const StepGraph& step, const StepOperators& operators,
               ConstantStore& constants, const Loss& loss, uint64_t seed, void* spare_workspace)
    : backend_(backend),
      step_(step),
      operators_(operators),
      constants_(constants),
      loss_(loss),
      seed_(seed),
      spare_workspace_(spare_workspace) {}

Result<double> Runner::Run(const Program& program, BufferMemory& memory, RunObserver* observer,
                           uint64_t number) {
  step_seed_ = SeedFor(seed_ + number, "step");
  constants_.ClearGradients();
  RunState state{program, std::vector<void*>(program.buffers.size(), nullptr)};
  double loss = 0;
  const bool fuses = observer == nullptr || observer->allows_fusion();
  const FusedProgram fused =
      fuses ? FusedProgram(program, step_, operators_, backend_) : FusedProgram();
  for (size_t at = 0; at < program.actions.size(); ++at) {
    const Action& action = program.actions[at];
    if (observer != nullptr) CKPLAN_RETURN_IF_ERROR(observer->Before(action, state));
    if (const FusedProgram::Group* group = fused.GroupOf(at)) {
      CKPLAN_RETURN_IF_ERROR(RunFused(*group, at, state));
    } else {
      CKPLAN_RETURN_IF_ERROR(Execute(action, state, memory, loss));
    }
    if (observer != nullptr) CKPLAN_RETURN_IF_ERROR(observer->After(action, state));
  }
  backend_.Synchronize();
  CKPLAN_RETURN_IF_ERROR(CheckAllReleased(state));
  return loss;
}

Result<std::unique_ptr<RecordedStep>> Runner::Record(const Program& program, BufferMemory& arena) {
  if (operators_.runs_on_host) {
    return MakeError(ErrorCode::kUnsupported,
                     "a step in which the host computes operators cannot be recorded; leave out "
                     "--graph");
  }
  step_seed_ = SeedFor(seed_, "step");
  constants_.ClearGradients();
  auto recorded = std::make_unique<RecordedStep>();
  recorded->program = &program;
  RunState state{program, std::vector<void*>(program.buffers.size(), nullptr)};
  const FusedProgram fused(program, step_, operators_, backend_);
  double loss = 0;
  for (size_t begin = 0; begin < program.actions.size();) {
    RecordedStep::Piece piece{begin, begin + 1, nullptr, {}};
    if (program.actions[begin].kind == ActionKind::kLoss) {
      piece.address = state.address;
    } else {
      while (piece.end < program.actions.size() &&
             program.actions[piece.end].kind != ActionKind::kLoss) {
        ++piece.end;
      }
      Result<Done> given = Done{};
      piece.work =
          backend_.Record([&] { given = Submit(fused, piece.begin, piece.end, state, arena); });
      CKPLAN_RETURN_IF_ERROR(given);
      if (piece.work == nullptr) return std::unique_ptr<RecordedStep>();
    }
    CKPLAN_RETURN_IF_ERROR(RunPiece(piece, program, loss));
    begin = piece.end;
    recorded->pieces.push_back(std::move(piece));
  }
  backend_.Synchronize();
  CKPLAN_RETURN_IF_ERROR(CheckAllReleased(state));
  return recorded;
}

Result<Done> Runner::Submit(const FusedProgram& fused, size_t begin, size_t end, RunState& state,
                            BufferMemory& memory) {
  double loss = 0;
  for (size_t at = begin; at < end; ++at) {
    if (const FusedProgram::Group* group = fused.GroupOf(at)) {
      CKPLAN_RETURN_IF_ERROR(RunFused(*group, at, state));
    } else {
      CKPLAN_RETURN_IF_ERROR(Execute(state.program.actions[at], state, memory, loss));
    }
  }
  return Done{};
}

Result<Done> Runner::RunPiece(const RecordedStep::Piece& piece, const Program& program,
                              double& loss) {
  if (piece.work != nullptr) {
    piece.work->Start();
    return Done{};
  }
  const RunState state{program, piece.address};
  return RunLoss(program.actions[piece.begin], state, loss);
}

Result<double> Runner::RunRecorded(const RecordedStep& recorded, RunObserver* observer) {
  constants_.ClearGradients();
  double loss = 0;
  const RunState state{*recorded.program, {}};
  for (const RecordedStep::Piece& piece : recorded.pieces) {
    const auto& actions = recorded.program->actions;
    if (observer != nullptr) {
      CKPLAN_RETURN_IF_ERROR(observer->Before(actions[piece.begin], state));
    }
    CKPLAN_RETURN_IF_ERROR(RunPiece(piece, *recorded.program, loss));
    if (observer != nullptr) {
      CKPLAN_RETURN_IF_ERROR(observer->After(actions[piece.end - 1], state));
    }
  }
  backend_.Synchronize();
  return loss;
}

Result<Done> Runner::CheckAllReleased(const RunState& state) const {
  for (size_t i = 0; i < state.address.size(); ++i) {
    if (state.address[i] == nullptr) continue;
    return MakeError(ErrorCode::kCheckFailed,
                     fmt::format("{} is still in memory after step {}, the last one",
                                 BufferText(step_, state.program, static_cast<int32_t>(i)),
                                 state.program.steps - 1));
  }
  return Done{};
}

Result<Done> Runner::Execute(const Action& action, RunState& state, BufferMemory& memory,
                             double& loss) {
  const auto buffer = static_cast<size_t>(action.buffer);
  switch (action.kind) {
    case ActionKind::kAllocate: {
      CKPLAN_ASSIGN_OR_RETURN(state.address[buffer], memory.Begin(action.buffer, action.step));
      return Done{};
    }
    case ActionKind::kRelease:
      memory.End(action.buffer);
      state.address[buffer] = nullptr;
      return Done{};
    case ActionKind::kForward:
      return Forward(action, state);
    case ActionKind::kBackward:
      return Backward(action, state);
    case ActionKind::kLoss:
      return RunLoss(action, state, loss);
    case ActionKind::kAdd: {
      const TensorId tensor = state.program.buffers[buffer].tensor;
      const Operand& operand = step_.tensors[tensor];
      backend_.AddScaled(state.address[buffer], state.address[static_cast<size_t>(action.from)],
                         operand.type, 1, operand.elements());
      return Done{};
    }
    case ActionKind::kCopy: {
      const TensorId tensor = state.program.buffers[buffer].tensor;
      backend_.Copy(state.address[buffer], state.address[static_cast<size_t>(action.from)],
                    step_.tensors[tensor].bytes());
      return Done{};
    }
    case ActionKind::kOut:
    case ActionKind::kDrop:
    case ActionKind::kIn:
    case ActionKind::kArrive:
    case ActionKind::kForget:
      CKPLAN_CHECK(memory.host() != nullptr, "a program that copies to the host has host memory");
      return Transfer(action, state, *memory.host());
  }
  return Done{};
}

Result<Done> Runner::Transfer(const Action& action, const RunState& state, HostCopies& host) {
  void* const address =
      action.buffer == kNoBuffer ? nullptr : state.address[static_cast<size_t>(action.buffer)];
  switch (action.kind) {
    case ActionKind::kOut:
      return host.Out(action.copy, address);
    case ActionKind::kDrop:
      host.Drop(action.copy);
      break;
    case ActionKind::kIn:
      host.In(action.copy, address);
      break;
    case ActionKind::kArrive:
      host.Arrive(action.copy);
      break;
    default:
      host.Forget(action.copy);
  }
  return Done{};
}

Result<Runner::Operands> Runner::OperandsOf(const Action& action, const Call& call,
                                            const RunState& state) const {
  const StepNode& node = step_.nodes[call.node];
  Operands operands;
  Result<Done> fault = Done{};
  const auto address = [&](int32_t buffer) -> void* {
    if (buffer == kNoBuffer) return nullptr;
    void* const found = state.address[static_cast<size_t>(buffer)];
    // A buffer of zero bytes also has an address, so null means that the buffer is not in memory.
    if (found == nullptr && fault.ok()) {
      fault =
          MakeError(ErrorCode::kCheckFailed, fmt::format("{} needs {}, which is not in memory",
                                                         StepText(step_, state.program, action),
                                                         BufferText(step_, state.program, buffer)));
    }
    return found;
  };
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const Binding& binding = node.inputs[i];
    const void* at = address(call.inputs[i]);
    if (!binding.constant.is_none()) at = constants_.constant(binding.constant);
    if (!binding.tensor.is_none() && step_.graph.is_input(binding.tensor)) {
      at = constants_.input(binding.tensor);
    }
    operands.inputs.push_back(at);
  }
  for (const int32_t output : call.outputs) {
    operands.outputs.push_back(address(output));
    operands.readable_outputs.push_back(operands.outputs.back());
  }
  for (const int32_t gradient : call.output_gradients) {
    operands.output_gradients.push_back(address(gradient));
  }
  operands.statistic = address(call.statistic);
  address(call.workspace);
  operands.workspace = WorkspaceOf(action, call, state);
  operands.seed = SeedFor(step_seed_, node.spec.name);
  CKPLAN_RETURN_IF_ERROR(fault);
  return operands;
}

bool Runner::HasRoom(const Call& call, const RunState& state, int64_t bytes) const {
  return call.workspace != kNoBuffer &&
         state.program.buffers[static_cast<size_t>(call.workspace)].bytes >= Bytes(bytes);
}

// A buffer planned for PyTorch's temporary tensors may be smaller than this operator's workspace.
void* Runner::WorkspaceOf(const Action& action, const Call& call, const RunState& state) const {
  const OpWorkspace& own = operators_.workspaces[call.node];
  const int64_t bytes = action.kind == ActionKind::kBackward ? own.backward : own.forward;
  if (!HasRoom(call, state, bytes)) return spare_workspace_;
  return state.address[static_cast<size_t>(call.workspace)];
}

// Returns where to compute gradients that are added to others: the planned buffer, or the end of
// the workspace.
void* Runner::ScratchOf(const Action& action, const Call& call, const RunState& state) const {
  const NodeId node = call.node;
  char* const workspace = static_cast<char*>(WorkspaceOf(action, call, state));
  const bool is_apart = workspace == spare_workspace_ &&
                        HasRoom(call, state, std::max<int64_t>(1, operators_.ScratchBytes(node)));
  if (is_apart) return state.address[static_cast<size_t>(call.workspace)];
  return workspace + operators_.gradient_scratch[node];
}

Result<Done> Runner::Forward(const Action& action, const RunState& state) {
  const Call& call = state.program.calls[static_cast<size_t>(action.call)];
  CKPLAN_ASSIGN_OR_RETURN(const Operands operands, OperandsOf(action, call, state));
  operators_.nodes[call.node]->Forward(
      {operands.inputs, operands.outputs, operands.statistic, operands.workspace, operands.seed});
  return Done{};
}

Result<Done> Runner::RunFused(const FusedProgram::Group& group, size_t at, const RunState& state) {
  if (group.IsFirst(at)) {
    const Action& action = state.program.actions[at];
    Call call = state.program.calls[static_cast<size_t>(action.call)];
    call.outputs[0] = kNoBuffer;
    CKPLAN_ASSIGN_OR_RETURN(const Operands operands, OperandsOf(action, call, state));
    group.run->Begin(
        {operands.inputs, operands.outputs, operands.statistic, operands.workspace, operands.seed});
  }
  if (!group.IsLast(at)) return Done{};
  std::vector<Operands> operands;
  for (size_t i = 0; i < group.fusion.calls.size(); ++i) {
    const Action& action = state.program.actions[group.fusion.actions[i]];
    CKPLAN_ASSIGN_OR_RETURN(Operands own, OperandsOf(action, group.fusion.calls[i], state));
    operands.push_back(std::move(own));
  }
  std::vector<ForwardCall> calls;
  for (const Operands& own : operands) {
    calls.push_back({own.inputs, own.outputs, own.statistic, nullptr, own.seed});
  }
  group.run->Run(calls);
  return Done{};
}

Result<Done> Runner::Backward(const Action& action, const RunState& state) {
  const Call& call = state.program.calls[static_cast<size_t>(action.call)];
  CKPLAN_ASSIGN_OR_RETURN(const Operands operands, OperandsOf(action, call, state));
  const BackwardCall backward{operands.inputs,           operands.readable_outputs,
                              operands.output_gradients, operands.statistic,
                              operands.workspace,        operands.seed};
  const auto position = static_cast<size_t>(action.position);
  PreparedOp& op = *operators_.nodes[call.node];
  if (action.buffer != kNoBuffer) {
    op.BackwardInput(backward, position, state.address[static_cast<size_t>(action.buffer)]);
    return Done{};
  }
  constants_.BackwardConstant(step_.nodes[call.node], op, backward, position,
                              ScratchOf(action, call, state));
  return Done{};
}

Result<Done> Runner::RunLoss(const Action& action, const RunState& state, double& loss) {
  const auto position = static_cast<size_t>(action.position);
  const int32_t output = state.program.output_buffers[position];
  const TensorId tensor = step_.graph.outputs()[position];
  loss += loss_.Run(backend_, step_.graph.tensor(tensor).name, step_.tensors[tensor],
                    state.address[static_cast<size_t>(output)],
                    state.address[static_cast<size_t>(action.buffer)]);
  return Done{};
}

}  // namespace ckplan
