#include "lib/executor/core/buffer_watch.h"

#include <fmt/format.h>

namespace ckplan {

BufferWatch::BufferWatch(Backend& backend, const StepGraph& step, const ConstantStore& constants,
                         Reference& reference)
    : backend_(backend),
      step_(step),
      constants_(constants),
      reference_(reference),
      constant_has_nan_(step.constants.size()) {}

Result<Done> BufferWatch::Before(const Action& action, const RunState& state) {
  records_.resize(state.address.size());
  reads_nan_ = false;
  switch (action.kind) {
    case ActionKind::kForward:
    case ActionKind::kBackward:
      return CheckReads(action, state);
    case ActionKind::kAdd:
      CKPLAN_RETURN_IF_ERROR(CheckRead(action, state, action.buffer));
      return CheckRead(action, state, action.from);
    case ActionKind::kCopy:
      return CheckRead(action, state, action.from);
    case ActionKind::kLoss:
      return CheckRead(action, state,
                       state.program.output_buffers[static_cast<size_t>(action.position)]);
    case ActionKind::kOut:
    case ActionKind::kDrop:
      return CheckRead(action, state, action.buffer);
    case ActionKind::kIn:
    case ActionKind::kArrive:
    case ActionKind::kForget:
      return Done{};
    case ActionKind::kAllocate:
    case ActionKind::kRelease:
      record(action.buffer).reset();
      return Done{};
  }
  return Done{};
}

// Records a load when the wait for it has ended; its bytes must not be read earlier.
Result<Done> BufferWatch::WatchTransfer(const Action& action, const RunState& state) {
  copied_.resize(state.program.copies.size());
  Record& copied = copied_[static_cast<size_t>(action.copy)];
  if (action.kind == ActionKind::kOut) copied = *record(action.buffer);
  if (action.kind != ActionKind::kArrive) return Done{};
  const void* const memory = state.address[static_cast<size_t>(action.buffer)];
  record(action.buffer) = copied;
  if (backend_.Inspect(memory, copied.bytes, copied.type) == copied.digest) return Done{};
  return MakeError(ErrorCode::kCheckFailed,
                   fmt::format("{} needs {}, but the host returned other bytes than were "
                               "copied to it after step {}",
                               StepText(step_, state.program, action),
                               BufferText(step_, state.program, action.buffer), copied.written_at));
}

Result<Done> BufferWatch::CheckReads(const Action& action, const RunState& state) {
  const Call& call = state.program.calls[static_cast<size_t>(action.call)];
  CheckConstants(step_.nodes[call.node]);
  for (const int32_t buffer : call.inputs) {
    CKPLAN_RETURN_IF_ERROR(CheckRead(action, state, buffer));
  }
  if (action.kind == ActionKind::kForward) return Done{};
  for (const int32_t buffer : call.outputs) {
    CKPLAN_RETURN_IF_ERROR(CheckRead(action, state, buffer));
  }
  CKPLAN_RETURN_IF_ERROR(CheckRead(action, state, call.statistic));
  // Nothing is recorded before the first input's gradient; later inputs see what earlier ones left.
  if (call.workspace != kNoBuffer && record(call.workspace)) {
    CKPLAN_RETURN_IF_ERROR(CheckRead(action, state, call.workspace));
  }
  return CheckGradients(action, state, call);
}

void BufferWatch::CheckConstants(const StepNode& node) {
  for (const Binding& input : node.inputs) {
    if (input.constant.is_none()) continue;
    const ConstantId root = step_.constants[input.constant].root;
    std::optional<bool>& has_nan = constant_has_nan_[root];
    if (!has_nan) {
      const Operand& operand = step_.constants[root].operand;
      const void* const memory = constants_.constant(root);
      has_nan =
          memory != nullptr && backend_.Inspect(memory, operand.bytes(), operand.type).has_nan;
    }
    reads_nan_ = reads_nan_ || *has_nan;
  }
}

Result<Done> BufferWatch::CheckRead(const Action& action, const RunState& state, int32_t buffer) {
  if (buffer == kNoBuffer) return Done{};
  const std::string what = BufferText(step_, state.program, buffer);
  const std::string where = StepText(step_, state.program, action);
  const auto& record = records_[static_cast<size_t>(buffer)];
  const void* const memory = state.address[static_cast<size_t>(buffer)];
  if (memory == nullptr) {
    return MakeError(ErrorCode::kCheckFailed,
                     fmt::format("{} needs {}, which is not in memory", where, what));
  }
  if (!record) {
    return MakeError(ErrorCode::kCheckFailed,
                     fmt::format("{} reads {}, which was never written", where, what));
  }
  const BufferDigest now = backend_.Inspect(memory, record->bytes, record->type);
  reads_nan_ = reads_nan_ || now.has_nan;
  if (now == record->digest) return Done{};
  return MakeError(
      ErrorCode::kCheckFailed,
      fmt::format("{} reads {}, but its memory was {} after step {} had written it", where, what,
                  now.first_poison >= 0 ? "freed" : "overwritten", record->written_at));
}

// All contributions to a tensor's gradient have arrived when the tensor's producer runs backward.
Result<Done> BufferWatch::CheckGradients(const Action& action, const RunState& state,
                                         const Call& call) {
  const StepNode& node = step_.nodes[call.node];
  for (size_t i = 0; i < call.output_gradients.size(); ++i) {
    const int32_t buffer = call.output_gradients[i];
    if (buffer == kNoBuffer) continue;
    CKPLAN_RETURN_IF_ERROR(CheckRead(action, state, buffer));
    const TensorId tensor = node.outputs[i];
    CKPLAN_RETURN_IF_ERROR(Compare(
        reference_.gradients[tensor], record(buffer)->digest,
        fmt::format("the gradient of \"{}\"", step_.graph.tensor(tensor).name), action, state));
  }
  return Done{};
}

Result<Done> BufferWatch::After(const Action& action, const RunState& state) {
  switch (action.kind) {
    case ActionKind::kForward:
      return RecordOutputs(action, state);
    case ActionKind::kBackward:
      RecordWorkspace(action, state);
      [[fallthrough]];
    case ActionKind::kLoss:
    case ActionKind::kAdd:
    case ActionKind::kCopy: {
      if (action.buffer == kNoBuffer) return Done{};
      const TensorId tensor = state.program.buffers[static_cast<size_t>(action.buffer)].tensor;
      return Write(action, state, action.buffer, step_.tensors[tensor],
                   BufferText(step_, state.program, action.buffer));
    }
    case ActionKind::kOut:
    case ActionKind::kArrive:
      return WatchTransfer(action, state);
    case ActionKind::kAllocate:
      RecordRest(action, state);
      return Done{};
    case ActionKind::kDrop:
    case ActionKind::kIn:
    case ActionKind::kForget:
    case ActionKind::kRelease:
      return Done{};
  }
  return Done{};
}

void BufferWatch::RecordRest(const Action& action, const RunState& state) {
  const ProgramBuffer& made = state.program.buffers[static_cast<size_t>(action.buffer)];
  if (made.kind != BufferKind::kTensor) return;
  const Tensor& tensor = step_.graph.tensor(made.tensor);
  if (tensor.kind != TensorKind::kStatistic) return;
  if (step_.nodes[tensor.producer].statistic == made.tensor) return;
  const int64_t bytes = made.bytes.count();
  const void* address = state.address[static_cast<size_t>(action.buffer)];
  record(action.buffer) = Record{backend_.Inspect(address, bytes, ElementType::kBool), bytes,
                                 ElementType::kBool, action.step};
}

Result<Done> BufferWatch::RecordOutputs(const Action& action, const RunState& state) {
  const Call& call = state.program.calls[static_cast<size_t>(action.call)];
  const StepNode& node = step_.nodes[call.node];
  const auto made = [&](int32_t buffer, TensorId tensor) -> Result<Done> {
    // Messages name a buffer that is written in place after the tensor it held first.
    const std::string what = fmt::format("\"{}\"", step_.graph.tensor(tensor).name);
    CKPLAN_RETURN_IF_ERROR(Write(action, state, buffer, step_.tensors[tensor], what));
    return Compare(reference_.tensors[tensor], record(buffer)->digest, what, action, state);
  };
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    if (call.outputs[i] == kNoBuffer) continue;
    CKPLAN_RETURN_IF_ERROR(made(call.outputs[i], node.outputs[i]));
  }
  if (call.statistic == kNoBuffer) return Done{};
  return made(call.statistic, node.statistic);
}

Result<Done> BufferWatch::Write(const Action& action, const RunState& state, int32_t buffer,
                                const Operand& operand, const std::string& what) {
  Record written;
  written.bytes = operand.bytes();
  written.type = operand.type;
  written.written_at = action.step;
  written.digest =
      backend_.Inspect(state.address[static_cast<size_t>(buffer)], written.bytes, written.type);
  const int64_t poison = written.digest.first_poison;
  record(buffer) = written;
  const std::string where = StepText(step_, state.program, action);
  if (poison >= 0) {
    return MakeError(ErrorCode::kCheckFailed,
                     fmt::format("{} leaves element {} of {} poisoned: it read memory that was "
                                 "freed or never written",
                                 where, poison, what));
  }
  if (reads_nan_ || !written.digest.has_nan) return Done{};
  return MakeError(ErrorCode::kCheckFailed,
                   fmt::format("{} leaves a NaN in {}, and reads none: it read memory that was "
                               "freed or never written, or its result is undefined",
                               where, what));
}

// Records bytes instead of floats, because unwritten parts of the workspace may remain poison.
void BufferWatch::RecordWorkspace(const Action& action, const RunState& state) {
  const int32_t buffer = state.program.calls[static_cast<size_t>(action.call)].workspace;
  if (buffer == kNoBuffer) return;
  Record left;
  left.bytes = state.program.buffers[static_cast<size_t>(buffer)].bytes.count();
  left.type = ElementType::kBool;
  left.written_at = action.step;
  left.digest = backend_.Inspect(state.address[static_cast<size_t>(buffer)], left.bytes, left.type);
  record(buffer) = left;
}

Result<Done> BufferWatch::Compare(std::optional<BufferDigest>& reference,
                                  const BufferDigest& digest, const std::string& what,
                                  const Action& action, const RunState& state) const {
  if (!reference) reference = digest;
  if (*reference == digest) return Done{};
  return MakeError(ErrorCode::kCheckFailed,
                   fmt::format("{}: {} differs from its value when everything is kept",
                               StepText(step_, state.program, action), what));
}

}  // namespace ckplan
