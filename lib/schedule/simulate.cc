#include "lib/schedule/simulate.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/base/stop.h"
#include "lib/schedule/gradients.h"

namespace ckplan {
namespace {

constexpr int32_t kNotRead = -1;

// Sums live gradient bytes and remembers the highest sum since the last reset.
class ByteCounter {
 public:
  explicit ByteCounter(const TensorGraph& graph) : graph_(graph) {}

  void Allocate(int32_t /*buffer*/, TensorId gradient_of) {
    const Bytes bytes = graph_.tensor(gradient_of).bytes;
    sizes_.push_back(bytes);
    live_ += bytes;
    highest_ = std::max(highest_, live_);
  }
  void Release(int32_t buffer) { live_ -= sizes_[static_cast<size_t>(buffer)]; }

  void ResetHighest() { highest_ = live_; }
  Bytes live() const { return live_; }
  Bytes highest() const { return highest_; }

 private:
  const TensorGraph& graph_;
  std::vector<Bytes> sizes_;
  Bytes live_;
  Bytes highest_;
};

// The highest need, and the earliest step that has it, in whichever order steps are visited.
struct Peak {
  int64_t bytes = -1;
  size_t step = 0;
  void Update(int64_t needed_bytes, size_t at) {
    if (needed_bytes > bytes || (needed_bytes == bytes && at < step)) {
      bytes = needed_bytes;
      step = at;
    }
  }
};

}  // namespace

void Simulator::Lists::Append(const std::vector<TensorId>& list, const TensorGraph& graph,
                              bool with_inputs) {
  for (const TensorId id : list) {
    if (with_inputs || !graph.is_input(id)) items.push_back(id.index());
  }
  starts.push_back(static_cast<int32_t>(items.size()));
}

Simulator::Simulator(const TensorGraph& graph) : graph_(graph) {
  for (const Tensor& tensor : graph.tensors()) tensor_bytes_.push_back(tensor.bytes.count());
  for (const Node& node : graph.nodes()) {
    forward_reads_.Append(node.inputs, graph, false);
    backward_reads_.Append(node.backward_reads, graph, false);
    outputs_.Append(node.outputs, graph, true);
    Bytes bytes;
    for (const TensorId output : node.outputs) bytes += graph.tensor(output).bytes;
    output_bytes_.push_back(bytes.count());
  }
  for (const TensorId output : graph.outputs()) {
    if (!graph.is_input(output)) loss_reads_.push_back(output.index());
  }
}

Result<Simulation> Simulator::Run(const Schedule& schedule) {
  CKPLAN_RETURN_IF_ERROR(CheckShape(schedule));
  UpdateProfile();
  return schedule.frees == FreePolicy::kLiveness ? RunLiveness(schedule) : RunExplicit(schedule);
}

Error Simulator::StepError(const Schedule& schedule, size_t step, const std::string& fault) const {
  static constexpr const char* kVerbs[] = {"forward", "loss", "backward", "free", "run"};
  const Step& s = schedule.steps[step];
  std::string what = kVerbs[static_cast<size_t>(s.kind)];
  const auto index = static_cast<size_t>(s.index);
  if (s.kind == StepKind::kFree && index < graph_.tensors().size()) {
    what += fmt::format(" of \"{}\"", graph_.tensor(s.tensor()).name);
  } else if (s.kind != StepKind::kLoss && index < graph_.nodes().size()) {
    what += fmt::format(" of \"{}\"", graph_.node(s.node()).name);
  }
  return MakeError(ErrorCode::kInvalidInput,
                   fmt::format("schedule: step {} ({}) {}", step, what, fault));
}

// Everything but memory: indices, one loss, one backward each in an order that is allowed, all
// nodes run.
Result<Done> Simulator::CheckShape(const Schedule& schedule) {
  const size_t node_count = graph_.nodes().size();
  runs_.assign(node_count, 0);
  order_.clear();
  backward_order_.clear();
  bool has_loss = false;
  bool is_mirrored = true;
  for (size_t k = 0; k < schedule.steps.size(); ++k) {
    const Step& step = schedule.steps[k];
    const auto index = static_cast<size_t>(step.index);
    if (step.kind == StepKind::kLoss) {
      if (has_loss) return StepError(schedule, k, "is a second loss");
      has_loss = true;
      is_mirrored &= order_.size() == node_count;
    } else if (step.kind == StepKind::kFree) {
      if (schedule.frees != FreePolicy::kExplicit || index >= graph_.tensors().size()) {
        return StepError(schedule, k, "frees what this schedule may not free");
      }
    } else if (step.kind == StepKind::kRun) {
      return StepError(schedule, k, "is for joint graphs alone");
    } else if (index >= node_count) {
      return StepError(schedule, k, "runs a node that the graph does not have");
    } else if (step.kind == StepKind::kForward) {
      if (runs_[index]++ == 0) order_.push_back(step.node());
    } else {
      if (!has_loss) return StepError(schedule, k, "comes before the loss");
      backward_order_.push_back(step.node());
      const size_t count = backward_order_.size();
      is_mirrored &= count <= order_.size() && order_[order_.size() - count] == step.node();
    }
  }
  if (!has_loss) return MakeError(ErrorCode::kInvalidInput, "schedule: there is no loss");
  if (backward_order_.size() < node_count) {
    return MakeError(ErrorCode::kInvalidInput, fmt::format("schedule: {} nodes never run backward",
                                                           node_count - backward_order_.size()));
  }
  return is_mirrored ? Done{} : CheckFreeOrder(schedule);
}

// The rules of backward_order.h for a schedule that is not mirrored and whose steps name nodes.
Result<Done> Simulator::CheckFreeOrder(const Schedule& schedule) {
  if (!precedence_) precedence_.emplace(graph_);
  IdVector<NodeId, bool> has_run(graph_.nodes().size());
  IdVector<NodeId, bool> has_run_backward(graph_.nodes().size());
  for (size_t k = 0; k < schedule.steps.size(); ++k) {
    const Step& step = schedule.steps[k];
    if (step.kind == StepKind::kForward) has_run[step.node()] = true;
    if (step.kind != StepKind::kBackward) continue;
    const NodeId id = step.node();
    if (has_run_backward[id]) return StepError(schedule, k, "runs a second time");
    if (!has_run[id]) return StepError(schedule, k, "comes before its node has run forward");
    for (const NodeId first : precedence_->after[id]) {
      if (has_run_backward[first]) continue;
      return StepError(schedule, k,
                       fmt::format("comes before that of \"{}\", which adds to a gradient first",
                                   graph_.node(first).name));
    }
    has_run_backward[id] = true;
  }
  return Done{};
}

void Simulator::UpdateProfile() {
  const size_t count = backward_order_.size();
  if (profile_.order == backward_order_ && profile_.during.size() == count) return;
  profile_.order.clear();  // Until all of the profile is there: a stop may come.
  profile_.during.resize(count);
  profile_.after.resize(count);
  ByteCounter counter(graph_);
  GradientReplay<ByteCounter> replay(graph_, &counter);
  replay.Loss();
  profile_.after_loss = counter.live();
  for (const NodeId id : backward_order_) {
    PollStop();
    counter.ResetHighest();
    replay.Backward(id);
    profile_.during[id] = counter.highest();
    profile_.after[id] = counter.live();
  }
  profile_.order = backward_order_;
}

// One pass from the last step to the first. In that direction, the first read of a tensor that is
// met is where its version dies, and the forward step that makes it is where the version begins; so
// the memory before each step follows from the memory after it.
Result<Simulation> Simulator::RunLiveness(const Schedule& schedule) {
  last_read_.assign(tensor_bytes_.size(), kNotRead);
  Peak peak;
  int64_t live = 0;   // Activations and statistics; before step k once k has been passed.
  int64_t saved = 0;  // Of that, behind the loss.
  int64_t forward_cost = 0;
  size_t backward_done = backward_order_.size();
  int64_t gradients = GradientsAfter(backward_done);
  for (size_t k = schedule.steps.size(); k-- > 0;) {
    PollStop();
    const Step& step = schedule.steps[k];
    const auto n = static_cast<size_t>(step.index);
    const auto read = [&](int32_t tensor) {
      const auto t = static_cast<size_t>(tensor);
      if (last_read_[t] != kNotRead) return;
      last_read_[t] = static_cast<int32_t>(k);
      live += tensor_bytes_[t];
    };
    if (step.kind == StepKind::kForward) {
      for (const int32_t output : outputs_.of(n)) {
        const auto t = static_cast<size_t>(output);
        if (last_read_[t] == kNotRead) live += tensor_bytes_[t];  // Nobody reads this version.
        last_read_[t] = kNotRead;
      }
      for (const int32_t t : forward_reads_.of(n)) read(t);
      const Node& node = graph_.node(step.node());
      peak.Update(live + gradients + node.forward_workspace.count() -
                      ReusedBytes(node, static_cast<int32_t>(k)),
                  k);
      live -= output_bytes_[n];
      forward_cost += node.forward_cost.count();
    } else if (step.kind == StepKind::kLoss) {
      saved = live;
      for (const int32_t t : loss_reads_) read(t);
      peak.Update(live + gradients, k);
      gradients = 0;
    } else {
      for (const int32_t t : backward_reads_.of(n)) read(t);
      peak.Update(live + profile_.during[step.node()].count() +
                      graph_.node(step.node()).backward_workspace.count(),
                  k);
      gradients = GradientsAfter(--backward_done);
    }
  }
  for (size_t t = 0; t < last_read_.size(); ++t) {
    if (last_read_[t] != kNotRead) return AbsentTensor(schedule, static_cast<int32_t>(t));
  }
  return Measured(Bytes(peak.bytes), peak.step, Bytes(saved), Cost(forward_cost));
}

Simulation Simulator::Measured(Bytes peak, size_t step, Bytes saved, Cost forward_cost) const {
  const Bytes others = (graph_.micro_batches() - 1) * saved;
  return {peak + others, step, forward_cost - graph_.forward_cost(), others};
}

int64_t Simulator::ReusedBytes(const Node& node, int32_t step) const {
  for (const auto& [output, input] : node.in_place) {
    const Bytes bytes = graph_.tensor(input).bytes;
    const bool dies_here = last_read_[static_cast<size_t>(input.index())] == step;
    if (dies_here && bytes == graph_.tensor(output).bytes) return bytes.count();
  }
  return 0;
}

int64_t Simulator::GradientsAfter(size_t backward_steps) const {
  if (backward_steps == 0) return profile_.after_loss.count();
  return profile_.after[backward_order_[backward_steps - 1]].count();
}

// Explicit frees: what the papers do without liveness analysis. Nothing is written in place, for
// no input dies at the step that reads it last.
Result<Simulation> Simulator::RunExplicit(const Schedule& schedule) {
  std::vector<bool> is_live(tensor_bytes_.size());
  Peak peak;
  int64_t live = 0;
  int64_t saved = 0;
  bool has_passed_loss = false;  // But nothing behind it, save for frees.
  int64_t gradients = 0;
  int64_t forward_cost = 0;
  size_t backward_done = 0;
  for (size_t k = 0; k < schedule.steps.size(); ++k) {
    PollStop();
    const Step& step = schedule.steps[k];
    const auto n = static_cast<size_t>(step.index);
    if (step.kind == StepKind::kFree) {
      if (!is_live[n]) return StepError(schedule, k, "frees a tensor that is not in memory");
      is_live[n] = false;
      live -= tensor_bytes_[n];
      if (has_passed_loss) saved = live;
      continue;
    }
    has_passed_loss = step.kind == StepKind::kLoss;
    if (has_passed_loss) saved = live;
    const auto reads = step.kind == StepKind::kForward    ? forward_reads_.of(n)
                       : step.kind == StepKind::kBackward ? backward_reads_.of(n)
                                                          : std::span<const int32_t>(loss_reads_);
    for (const int32_t t : reads) {
      if (!is_live[static_cast<size_t>(t)]) return AbsentTensor(schedule, t);
    }
    if (step.kind == StepKind::kForward) {
      for (const int32_t output : outputs_.of(n)) {
        const auto t = static_cast<size_t>(output);
        if (is_live[t]) return StepError(schedule, k, "makes a tensor that is in memory already");
        is_live[t] = true;
      }
      live += output_bytes_[n];
      const Node& node = graph_.node(step.node());
      peak.Update(live + gradients + node.forward_workspace.count(), k);
      forward_cost += node.forward_cost.count();
    } else if (step.kind == StepKind::kLoss) {
      gradients = GradientsAfter(0);
      peak.Update(live + gradients, k);
    } else {
      peak.Update(live + profile_.during[step.node()].count() +
                      graph_.node(step.node()).backward_workspace.count(),
                  k);
      gradients = GradientsAfter(++backward_done);
    }
  }
  for (const TensorId id : graph_.tensors().ids()) {
    if (is_live[static_cast<size_t>(id.index())]) {
      return MakeError(
          ErrorCode::kInvalidInput,
          fmt::format("schedule: tensor \"{}\" is never freed", graph_.tensor(id).name));
    }
  }
  return Measured(Bytes(peak.bytes), peak.step, Bytes(saved), Cost(forward_cost));
}

// Only called for a faulty schedule: finds the first step that reads a tensor which is absent.
Error Simulator::AbsentTensor(const Schedule& schedule, int32_t tensor) const {
  const auto t = static_cast<size_t>(tensor);
  bool is_live = false;
  for (size_t k = 0; k < schedule.steps.size(); ++k) {
    const Step& step = schedule.steps[k];
    const auto n = static_cast<size_t>(step.index);
    const auto lists = [&](std::span<const int32_t> list) {
      return std::find(list.begin(), list.end(), tensor) != list.end();
    };
    if (step.kind == StepKind::kFree) {
      if (step.index == tensor) is_live = false;
      continue;
    }
    const bool reads = step.kind == StepKind::kForward    ? lists(forward_reads_.of(n))
                       : step.kind == StepKind::kBackward ? lists(backward_reads_.of(n))
                                                          : lists(loss_reads_);
    if (reads && !is_live) {
      return StepError(schedule, k,
                       fmt::format("reads tensor \"{}\", which is not in memory",
                                   graph_.tensors()[TensorId(t)].name));
    }
    if (step.kind == StepKind::kForward && lists(outputs_.of(n))) is_live = true;
  }
  CKPLAN_CHECK(false, "a replay found an absent tensor that a second look did not");
}

Bytes KeepAllPeak(const TensorGraph& graph) {
  return Simulator(graph).Run(KeepAllInOwnOrder(graph)).value().peak;
}

}  // namespace ckplan
