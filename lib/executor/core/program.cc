#include "lib/executor/core/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "lib/base/check.h"
#include "lib/executor/core/buffer_memory.h"
#include "lib/planning/plan/plan.h"
#include "lib/problem/schedule/arena.h"
#include "lib/problem/schedule/expand.h"
#include "lib/problem/schedule/gradients.h"
#include "lib/problem/schedule/schedule.h"
#include "lib/problem/schedule/simulate.h"
#include "lib/problem/schedule/timeline.h"
#include "lib/problem/schedule/transfers.h"

namespace ckplan {
namespace {

class ProgramBuilder {
 public:
  ProgramBuilder(const StepGraph& step, const TensorGraph& graph, const Schedule& schedule,
                 const Timeline& timeline)
      : step_(step),
        graph_(graph),
        schedule_(schedule),
        timeline_(timeline),
        replay_(graph, this),
        current_(graph.tensors().size(), kNoBuffer),
        has_run_(graph.nodes().size(), 0) {}

  Program Build() && {
    for (const Buffer& buffer : timeline_.buffers) {
      program_.buffers.push_back({buffer.kind, buffer.tensor, buffer.node, buffer.bytes});
    }
    program_.steps = schedule_.steps.size();
    FindTensorReleases();
    FindLastLoads();
    for (at_ = 0; at_ < schedule_.steps.size(); ++at_) {
      const Step& step = schedule_.steps[at_];
      if (step.kind == StepKind::kForward) Forward(step.node());
      if (step.kind == StepKind::kLoss) Loss();
      if (step.kind == StepKind::kBackward) Backward(step.node());
      if (step.is_transfer()) Move(step);
      for (const int32_t buffer : tensor_releases_[at_]) Emit(ActionKind::kRelease, buffer);
    }
    return std::move(program_);
  }

  // GradientReplay calls the following functions, and numbers gradients in allocation order.
  void Allocate(int32_t gradient, TensorId) {
    CKPLAN_CHECK(static_cast<size_t>(gradient) == gradient_buffers_.size(),
                 "gradients are numbered in the order of allocation");
    gradient_buffers_.push_back(AllocateNext(BufferKind::kGradient));
  }
  void Release(int32_t gradient) { Emit(ActionKind::kRelease, BufferOf(gradient)); }
  void Write(size_t input, int32_t gradient) {
    const StepNode& node = step_.nodes[program_.calls.back().node];
    const auto position = static_cast<int32_t>(node.batch_positions[input]);
    WriteConstantsBefore(position);
    Action& action = Emit(ActionKind::kBackward, BufferOf(gradient));
    action.call = LastCall();
    action.position = position;
  }
  void Add(int32_t into, int32_t from) {
    Emit(ActionKind::kAdd, BufferOf(into)).from = BufferOf(from);
  }
  void Copy(int32_t into, int32_t from) {
    Emit(ActionKind::kCopy, BufferOf(into)).from = BufferOf(from);
  }

 private:
  Action& Emit(ActionKind kind, int32_t buffer) {
    Action action;
    action.kind = kind;
    action.step = static_cast<int32_t>(at_);
    action.buffer = buffer;
    program_.actions.push_back(action);
    return program_.actions.back();
  }

  int32_t BufferOf(int32_t gradient) const {
    return gradient_buffers_[static_cast<size_t>(gradient)];
  }
  int32_t LastCall() const { return static_cast<int32_t>(program_.calls.size()) - 1; }

  // Numbers buffers in allocation order, as the timeline does.
  int32_t AllocateNext(BufferKind kind) {
    const auto buffer = static_cast<int32_t>(next_buffer_++);
    CKPLAN_CHECK(static_cast<size_t>(buffer) < timeline_.buffers.size() &&
                     timeline_.buffers[static_cast<size_t>(buffer)].kind == kind,
                 "the program's allocations match the timeline's");
    Emit(ActionKind::kAllocate, buffer);
    return buffer;
  }

  // Tensors are released at the end of a step, gradients and workspaces within it.
  void FindTensorReleases() {
    tensor_releases_.resize(schedule_.steps.size());
    for (size_t i = 0; i < timeline_.buffers.size(); ++i) {
      const Buffer& buffer = timeline_.buffers[i];
      if (buffer.kind != BufferKind::kTensor) continue;
      tensor_releases_[static_cast<size_t>(buffer.last_step)].push_back(static_cast<int32_t>(i));
    }
    for (std::vector<int32_t>& list : tensor_releases_) {
      std::sort(list.begin(), list.end(), [this](int32_t a, int32_t b) {
        return timeline_.buffers[static_cast<size_t>(a)].end <
               timeline_.buffers[static_cast<size_t>(b)].end;
      });
    }
  }

  // Finds where each host copy ends: at the step that drops a value without a later load, or where
  // the value of the last load has been read.
  void FindLastLoads() {
    is_last_use_.assign(schedule_.steps.size(), false);
    std::map<int32_t, size_t> last_use;  // By value number.
    for (size_t at = 0; at < schedule_.steps.size(); ++at) {
      const Step& step = schedule_.steps[at];
      if (!step.is_transfer()) continue;
      if (step.kind == StepKind::kOut && last_use.count(step.index) > 0) {
        is_last_use_[last_use[step.index]] = true;
      }
      last_use[step.index] = at;
    }
    for (const auto& [value, at] : last_use) is_last_use_[at] = true;
  }

  // ---- Transfers --------------------------------------------------------------------------------

  void Move(const Step& step) {
    const bool is_gradient = IsGradientTransfer(graph_, step);
    const TensorId tensor = is_gradient ? TensorOfGradientTransfer(graph_, step) : step.tensor();
    int32_t& copy = copy_of_[step.index];
    if (step.kind == StepKind::kIn) {
      const int32_t buffer = is_gradient ? BringBackGradient(tensor) : BringBackTensor(tensor);
      EmitTransfer(ActionKind::kIn, buffer, copy);
      arriving_[buffer] = {copy, is_last_use_[at_], false};
      return;
    }
    const int32_t buffer = is_gradient ? BufferOf(replay_.BufferOf(tensor)) : current_[tensor];
    if (step.kind == StepKind::kOut) {
      Await(buffer);
      copy = static_cast<int32_t>(program_.copies.size());
      const auto now = static_cast<int32_t>(at_);
      program_.copies.push_back({tensor, graph_.tensor(tensor).bytes, now, now});
      EmitTransfer(ActionKind::kOut, buffer, copy);
      return;
    }
    EmitTransfer(ActionKind::kDrop, buffer, copy);
    if (is_last_use_[at_]) Forget(copy);
    if (is_gradient) return replay_.TakeAway(tensor);
    current_[tensor] = kNoBuffer;  // FindTensorReleases schedules its release.
  }

  int32_t BringBackTensor(TensorId tensor) {
    ++next_version_;
    return current_[tensor] = AllocateNext(BufferKind::kTensor);
  }
  int32_t BringBackGradient(TensorId tensor) {
    replay_.BringBack(tensor);
    return BufferOf(replay_.BufferOf(tensor));
  }

  Action& EmitTransfer(ActionKind kind, int32_t buffer, int32_t copy) {
    Action& action = Emit(kind, buffer);
    action.copy = copy;
    return action;
  }

  // Waits for the copy back into a buffer that is about to be copied to the host again.
  void Await(int32_t buffer) {
    const auto found = arriving_.find(buffer);
    if (found == arriving_.end() || found->second.has_arrived) return;
    found->second.has_arrived = true;
    EmitTransfer(ActionKind::kArrive, buffer, found->second.copy);
  }

  // Waits for a pending copy back into a buffer that is about to be read. The host copy ends at the
  // first run that reads its last load.
  void Arrive(int32_t buffer) {
    Await(buffer);
    const auto found = arriving_.find(buffer);
    if (found == arriving_.end()) return;
    const Arrival arrival = found->second;
    arriving_.erase(found);
    if (arrival.is_last) Forget(arrival.copy);
  }
  void Arrive(const std::vector<TensorId>& tensors) {
    for (const TensorId tensor : tensors) Arrive(current_[tensor]);
  }
  void ArriveGradient(TensorId tensor) {
    const int32_t gradient = replay_.BufferOf(tensor);
    if (gradient != replay_.kNoBuffer) Arrive(BufferOf(gradient));
  }

  void Forget(int32_t copy) {
    program_.copies[static_cast<size_t>(copy)].last_step = static_cast<int32_t>(at_);
    EmitTransfer(ActionKind::kForget, kNoBuffer, copy);
  }

  // ---- Runs -------------------------------------------------------------------------------------

  Call& NewCall(NodeId id) {
    const StepNode& node = step_.nodes[id];
    Call call;
    call.node = id;
    for (const Binding& input : node.inputs) {
      call.inputs.push_back(input.tensor.is_none() ? kNoBuffer : current_[input.tensor]);
    }
    program_.calls.push_back(std::move(call));
    return program_.calls.back();
  }

  int32_t AllocateWorkspace(Bytes bytes) {
    return bytes == Bytes(0) ? kNoBuffer : AllocateNext(BufferKind::kWorkspace);
  }
  void ReleaseWorkspace(int32_t workspace) {
    if (workspace != kNoBuffer) Emit(ActionKind::kRelease, workspace);
  }

  void Forward(NodeId id) {
    const StepNode& node = step_.nodes[id];
    Arrive(graph_.node(id).inputs);
    Call& call = NewCall(id);  // Its inputs are the versions before this step.
    call.is_recomputation = has_run_[id] != 0;
    has_run_[id] = 1;
    for (const TensorId output : graph_.node(id).outputs) {
      const Version& version = timeline_.versions[next_version_++];
      const bool is_new = version.buffer == static_cast<int32_t>(next_buffer_);
      current_[output] = is_new ? AllocateNext(BufferKind::kTensor) : version.buffer;
    }
    for (const TensorId output : node.outputs) {
      call.outputs.push_back(output.is_none() ? kNoBuffer : current_[output]);
    }
    if (!node.statistic.is_none()) call.statistic = current_[node.statistic];
    call.workspace = AllocateWorkspace(graph_.node(id).forward_workspace);
    const int32_t workspace = call.workspace;
    Emit(ActionKind::kForward, kNoBuffer).call = LastCall();
    ReleaseWorkspace(workspace);
  }

  void Loss() {
    Arrive(graph_.outputs());
    replay_.Loss();
    const auto& outputs = graph_.outputs();
    for (size_t i = 0; i < outputs.size(); ++i) {
      program_.output_buffers.push_back(current_[outputs[i]]);
      const int32_t gradient = replay_.BufferOf(outputs[i]);
      if (gradient == replay_.kNoBuffer) continue;
      Emit(ActionKind::kLoss, BufferOf(gradient)).position = static_cast<int32_t>(i);
    }
  }

  void Backward(NodeId id) {
    const StepNode& node = step_.nodes[id];
    Arrive(graph_.node(id).backward_reads);
    for (const TensorId output : graph_.node(id).outputs) ArriveGradient(output);
    for (const TensorId input : graph_.node(id).inputs) ArriveGradient(input);
    Call& call = NewCall(id);
    bool arrives = false;
    for (const TensorId output : node.outputs) {
      call.outputs.push_back(output.is_none() ? kNoBuffer : current_[output]);
      const int32_t gradient = output.is_none() ? kNoBuffer : replay_.BufferOf(output);
      call.output_gradients.push_back(gradient == kNoBuffer ? kNoBuffer : BufferOf(gradient));
      arrives = arrives || gradient != kNoBuffer;
    }
    if (!node.statistic.is_none()) call.statistic = current_[node.statistic];
    HideUnread(node, call);
    call.workspace = AllocateWorkspace(graph_.node(id).backward_workspace);
    const int32_t workspace = call.workspace;
    next_trained_ = 0;
    if (arrives) BackwardInputs(id);
    ReleaseWorkspace(workspace);
  }

  // The replay ends by releasing the output gradients. Constants' gradients that are computed after
  // the replay's last write still read them, so those releases move to the end.
  void BackwardInputs(NodeId id) {
    const size_t before = program_.actions.size();
    replay_.Backward(id);
    std::vector<Action> releases;
    const auto is_release_of_output = [this](const Action& action) {
      const auto& gradients = program_.calls.back().output_gradients;
      return action.kind == ActionKind::kRelease &&
             std::find(gradients.begin(), gradients.end(), action.buffer) != gradients.end();
    };
    while (program_.actions.size() > before && is_release_of_output(program_.actions.back())) {
      releases.push_back(program_.actions.back());
      program_.actions.pop_back();
    }
    WriteConstantsBefore(static_cast<int32_t>(step_.nodes[id].inputs.size()));
    program_.actions.insert(program_.actions.end(), releases.rbegin(), releases.rend());
  }

  void WriteConstantsBefore(int32_t position) {
    const StepNode& node = step_.nodes[program_.calls.back().node];
    for (; next_trained_ < node.trained_positions.size(); ++next_trained_) {
      const auto trained = static_cast<int32_t>(node.trained_positions[next_trained_]);
      if (trained >= position) return;
      Action& action = Emit(ActionKind::kBackward, kNoBuffer);
      action.call = LastCall();
      action.position = trained;
    }
  }

  // Clears the addresses of operands that backward doesn't read, because they may have been
  // released.
  static void HideUnread(const StepNode& node, Call& call) {
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      if (!node.spec.inputs[i].is_read_by_backward) call.inputs[i] = kNoBuffer;
    }
    for (size_t i = 0; i < call.outputs.size(); ++i) {
      if (!node.spec.outputs[i].is_read_by_backward) call.outputs[i] = kNoBuffer;
    }
  }

  const StepGraph& step_;
  const TensorGraph& graph_;
  const Schedule& schedule_;
  const Timeline& timeline_;
  GradientReplay<ProgramBuilder> replay_;
  IdVector<TensorId, int32_t> current_;  // The buffer of each tensor's latest version.
  IdVector<NodeId, char> has_run_;
  std::vector<int32_t> gradient_buffers_;
  std::vector<std::vector<int32_t>> tensor_releases_;  // By step.
  struct Arrival {
    int32_t copy = -1;
    bool is_last = false;  // True if the host copy ends here.
    bool has_arrived = false;
  };
  std::map<int32_t, Arrival> arriving_;  // By buffer.
  std::map<int32_t, int32_t> copy_of_;   // The newest copy of each value, by value number.
  std::vector<bool> is_last_use_;        // By step.
  size_t next_buffer_ = 0;
  size_t next_version_ = 0;
  size_t next_trained_ = 0;
  size_t at_ = 0;
  Program program_;
};

}  // namespace

Program BuildProgram(const StepGraph& step, const TensorGraph& graph, const Schedule& schedule,
                     const Timeline& timeline) {
  return ProgramBuilder(step, graph, schedule, timeline).Build();
}

namespace {

bool HasWorkspaces(const TensorGraph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [](const Node& node) {
    return node.forward_workspace > Bytes(0) || node.backward_workspace > Bytes(0);
  });
}

Error WorkspaceMismatch(const Node& planned, const OpWorkspace& real) {
  return MakeError(
      ErrorCode::kCheckFailed,
      fmt::format("the plan's costs give \"{}\" a workspace of {} + {} bytes (forward, backward), "
                  "but here it needs {} + {}; profile again with this backend and thread count, "
                  "and plan with those costs",
                  planned.name, planned.forward_workspace.count(),
                  planned.backward_workspace.count(), real.forward, real.backward));
}

Error NotRunnableError(const Error& why) {
  return MakeError(ErrorCode::kCheckFailed,
                   fmt::format("the plan cannot be run: {}; plan it again", why.message));
}

// Places a plan made for the graph's expansion.
Result<PlacedProgram> PlaceTransfers(const StepGraph& step, const SizedGraph& run,
                                     const Plan& plan) {
  const Expansion expansion = ExpandTensorGraph(run.graph);
  const Link& link = *plan.request.offload;
  const TrainingStep joint =
      TrainingStep(expansion.graph, run.graph, expansion.step_of).WithLink(&link);
  const auto replayed = Simulator(joint).Run(plan.schedule);
  if (!replayed.ok()) return NotRunnableError(replayed.error());
  CKPLAN_ASSIGN_OR_RETURN(const Schedule forward,
                          InForwardForm(run.graph, expansion, plan.schedule));
  PlacedProgram ready = PlaceProgram(step, run, forward);
  ready.is_half_duplex = link.duplex == Duplex::kHalf;
  if (run.has_planned_sizes) {
    ready.predicted_peak = plan.figures.peak;
    ready.host_offsets = plan.host_offsets;
    ready.host_bytes = plan.figures.offload->host_arena;
    ready.predicted_host_peak = plan.figures.offload->host_peak;
  }
  return ready;
}

}  // namespace

PlannedWorkspaces WorkspacesOf(const Plan& plan) {
  const bool is_measured = plan.request.cost_model == "file" || !plan.request.workspaces.empty();
  return is_measured ? PlannedWorkspaces::kMeasured : PlannedWorkspaces::kTemporaries;
}

Result<SizedGraph> GraphToRun(const StepGraph& step, const StepOperators& operators,
                              const TensorGraph& planned, PlannedWorkspaces workspaces,
                              int64_t align_bytes) {
  SizedGraph run{step.graph};
  run.has_workspaces = workspaces == PlannedWorkspaces::kMeasured && HasWorkspaces(planned);
  if (run.has_workspaces) {
    for (const NodeId id : planned.nodes().ids()) {
      const Node& node = planned.node(id);
      const OpWorkspace& real = operators.workspaces[id];
      if (node.forward_workspace.count() != real.forward ||
          node.backward_workspace.count() != real.backward) {
        return WorkspaceMismatch(node, real);
      }
    }
    CKPLAN_ASSIGN_OR_RETURN(run.graph, GraphWithWorkspaces(step, operators));
  }
  for (const TensorId id : planned.tensors().ids()) {
    run.has_planned_sizes =
        run.has_planned_sizes && planned.tensor(id).bytes == run.graph.tensor(id).bytes;
  }
  if (align_bytes > 1) {
    CKPLAN_ASSIGN_OR_RETURN(run.graph, AlignSizes(run.graph, align_bytes));
  }
  return run;
}

PlacedProgram PlaceProgram(const StepGraph& step, const SizedGraph& run, const Schedule& schedule) {
  PlacedProgram ready;
  const Timeline timeline = BuildTimeline(run.graph, schedule);
  ready.program = BuildProgram(step, run.graph, schedule, timeline);
  ready.predicted_peak = timeline.peak;
  ready.has_workspaces = run.has_workspaces;
  Arena arena = PlaceBuffers(timeline);
  ready.offsets = std::move(arena.offsets);
  ready.arena_bytes = arena.bytes;
  HostArena host = PlaceOnHost(ready.program.copies);
  ready.host_offsets = std::move(host.offsets);
  ready.host_bytes = host.bytes;
  ready.predicted_host_peak = HostPeakOf(ready.program.copies);
  return ready;
}

Result<PlacedProgram> PlaceByPlan(const StepGraph& step, const SizedGraph& run, const Plan& plan) {
  if (plan.request.offload) return PlaceTransfers(step, run, plan);
  const auto replayed = Simulator(run.graph).Run(plan.schedule);
  if (!replayed.ok()) return NotRunnableError(replayed.error());
  PlacedProgram ready = PlaceProgram(step, run, plan.schedule);
  if (run.has_planned_sizes) {
    ready.offsets = plan.offsets;
    ready.arena_bytes = plan.figures.arena;
    ready.predicted_peak = plan.figures.peak;
  }
  return ready;
}

PlacedProgram PlaceKeepAll(const StepGraph& step, const SizedGraph& run, const Schedule& planned) {
  return PlaceProgram(step, run, KeepAllSchedule(ForwardOrderOfSameGradients(run.graph, planned)));
}

PlacedProgram PlaceKeepAll(const StepGraph& step, const SizedGraph& run, const Plan& plan) {
  if (!plan.request.offload) return PlaceKeepAll(step, run, plan.schedule);
  return PlaceProgram(step, run, KeepAllInOwnOrder(run.graph));
}

Result<std::unique_ptr<ArenaMemory>> ArenaFor(Backend& backend, const PlacedProgram& placed,
                                              bool poisons) {
  CKPLAN_ASSIGN_OR_RETURN(auto arena, ArenaMemory::Create(backend, placed.program, placed.offsets,
                                                          placed.arena_bytes, poisons));
  if (placed.program.copies.empty()) return arena;
  const HostCopiesOptions options{{placed.is_half_duplex, poisons}, poisons};
  CKPLAN_ASSIGN_OR_RETURN(auto host,
                          HostCopies::CreateInSlab(backend, placed.program, placed.host_offsets,
                                                   placed.host_bytes, options));
  arena->UseHost(std::move(host));
  return arena;
}

Bytes LargestWorkspace(const StepOperators& operators) {
  int64_t largest = 0;
  for (const OpWorkspace& workspace : operators.workspaces) {
    largest = std::max({largest, workspace.forward, workspace.backward});
  }
  return Bytes(largest);
}

}  // namespace ckplan
