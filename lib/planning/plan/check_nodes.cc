#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "lib/base/stop.h"
#include "lib/base/units.h"
#include "lib/planning/plan/check_order.h"
#include "lib/planning/plan/check_replay.h"
#include "lib/planning/plan/slab.h"

namespace ckplan {
namespace {

// The gradients of one backward pass, with their buffers.
class Gradients {
 public:
  Gradients(const TensorGraph& graph, bool are_freed, Slab* slab)
      : graph_(graph), are_freed_(are_freed), slab_(slab) {}

  bool are_freed() const { return are_freed_; }

  void AfterLoss() {
    for (const TensorId t : graph_.outputs()) {
      if (graph_.tensor(t).requires_grad && held_.count(t) == 0) held_[t] = New(t);
    }
  }

  std::optional<std::string> RunBackward(NodeId id) {
    if (graph_.backward() == BackwardForm::kByInput) return Collect(id);
    Push(graph_.node(id));
    return std::nullopt;
  }

  std::optional<std::string> Free(TensorId t) {
    if (graph_.is_input(t) || held_.count(t) == 0) {
      return fmt::format("the gradient of \"{}\" is freed but not in memory",
                         graph_.tensor(t).name);
    }
    Forget(held_.at(t));
    held_.erase(t);
    gone_.insert(t);
    return std::nullopt;
  }

  std::optional<std::string> FaultAtEnd() const {
    for (const auto& [t, block] : held_) {
      if (!are_freed_ || graph_.is_input(t)) continue;
      return fmt::format("the gradient of \"{}\" is still in memory at the end",
                         graph_.tensor(t).name);
    }
    return std::nullopt;
  }

 private:
  bool Arrives(NodeId id) const {
    for (const TensorId t : graph_.node(id).outputs) {
      if (held_.count(t) != 0) return true;
    }
    return false;
  }

  // By-input backward: creates the gradients of the node's outputs from those of all their readers.
  std::optional<std::string> Collect(NodeId id) {
    const Node& node = graph_.node(id);
    std::set<NodeId> sources = {id};
    for (const TensorId t : node.outputs) {
      if (!graph_.tensor(t).requires_grad) continue;
      const std::vector<NodeId>& readers = graph_.tensor(t).consumers;
      sources.insert(readers.begin(), readers.end());
    }
    for (const NodeId source : sources) {
      for (const TensorId t : graph_.node(source).outputs) {
        if (gone_.count(t) == 0) continue;
        return fmt::format("the gradient of \"{}\" is read but not in memory",
                           graph_.tensor(t).name);
      }
    }
    for (const TensorId t : node.outputs) {
      if (!graph_.tensor(t).requires_grad || held_.count(t) != 0) continue;
      for (const NodeId reader : graph_.tensor(t).consumers) {
        if (!Arrives(reader)) continue;
        held_[t] = New(t);
        break;
      }
    }
    for (const TensorId t : node.inputs) {
      if (!graph_.is_input(t) || !graph_.tensor(t).requires_grad) continue;
      if (held_.count(t) == 0 && Arrives(id)) held_[t] = New(t);
    }
    collected_.insert(id);
    if (are_freed_) return std::nullopt;
    for (const NodeId source : sources) {
      if (!IsReadLater(source)) ForgetAll(source);
    }
    return std::nullopt;
  }

  // True if a later step reads the node's gradients.
  bool IsReadLater(NodeId id) const {
    if (collected_.count(id) == 0) return true;
    for (const TensorId t : graph_.node(id).inputs) {
      const Tensor& input = graph_.tensor(t);
      const bool is_made = !input.producer.is_none() && input.requires_grad;
      if (is_made && collected_.count(input.producer) == 0) return true;
    }
    return false;
  }

  void ForgetAll(NodeId id) {
    for (const TensorId t : graph_.node(id).outputs) {
      if (held_.count(t) == 0) continue;
      Forget(held_.at(t));
      held_.erase(t);
    }
  }

  // By-node backward: creates the gradients of all inputs of the node.
  void Push(const Node& node) {
    std::vector<TensorId> arrived;
    for (const TensorId t : node.outputs) {
      if (held_.count(t) != 0) arrived.push_back(t);
    }
    if (arrived.empty()) return;
    for (const TensorId t : node.inputs) {
      if (graph_.tensor(t).requires_grad) Contribute(node, arrived.front(), t);
    }
    for (const TensorId t : arrived) {
      Forget(held_.at(t));
      held_.erase(t);
    }
  }

  int New(TensorId t) {
    const Tensor& tensor = graph_.tensor(t);
    const int block = slab_->Allocate(LiveBuffer::Gradient(t, tensor.bytes),
                                      fmt::format("the gradient of \"{}\"", tensor.name));
    holders_[block] = 1;
    return block;
  }
  void Forget(int block) {
    if (--holders_.at(block) == 0) slab_->Release(block);
  }
  void CopyIfShared(TensorId t) {
    const int shared = held_.at(t);
    if (holders_.at(shared) == 1) return;
    held_[t] = New(t);
    Forget(shared);
  }

  void Contribute(const Node& node, TensorId from, TensorId to) {
    const bool is_listed =
        std::count(node.gradient_passthrough.begin(), node.gradient_passthrough.end(), to) > 0;
    if (is_listed && graph_.tensor(from).bytes == graph_.tensor(to).bytes) {
      if (held_.count(to) != 0) return CopyIfShared(to);
      held_[to] = held_.at(from);
      ++holders_.at(held_.at(from));
      return;
    }
    const int contribution = New(to);
    if (held_.count(to) == 0) {
      held_[to] = contribution;
      return;
    }
    CopyIfShared(to);
    Forget(contribution);
  }

  const TensorGraph& graph_;
  const bool are_freed_;  // The schedule frees gradients explicitly.
  Slab* slab_;
  std::set<NodeId> collected_;  // Nodes whose backward step has run.
  std::set<TensorId> gone_;     // Tensors whose gradients were freed.
  std::map<TensorId, int> held_;
  std::map<int, int> holders_;
};

// Replays steps one at a time and stops at the first fault, because later faults may follow from
// it.
class ScheduleReplay {
 public:
  ScheduleReplay(const TensorGraph& graph, const Schedule& schedule, const ReplayOptions& options)
      : graph_(graph),
        schedule_(schedule),
        order_(graph, schedule, options.is_order_free),
        slab_(options.offsets, options.alignment),
        gradients_(
            graph,
            graph.backward() == BackwardForm::kByInput && schedule.frees == FreePolicy::kExplicit,
            &slab_),
        runs_(graph.nodes().size()) {}

  std::optional<std::string> Run() {
    if (auto fault = FindLastReads()) return fault;
    for (size_t k = 0; k < schedule_.steps.size(); ++k) {
      const Bytes highest = slab_.highest();
      if (auto fault = RunStep(k)) return fmt::format("step {}: {}", k, *fault);
      if (slab_.highest() > highest) peak_step_ = static_cast<int32_t>(k);
      NoteSaved(schedule_.steps[k]);
    }
    if (auto fault = order_.End()) return fault;
    if (!blocks_.empty()) {
      return fmt::format("\"{}\" is still in memory at the end",
                         graph_.tensor(blocks_.begin()->first).name);
    }
    if (auto fault = gradients_.FaultAtEnd()) return fault;
    return slab_.fault();
  }

  const Slab& slab() const { return slab_; }
  int32_t peak_step() const { return peak_step_; }
  Cost overhead() const { return overhead_; }
  const IdVector<NodeId, int32_t>& runs() const { return runs_; }
  // Memory in use after the loss and the frees that follow it, without gradients.
  Bytes saved() const { return saved_; }
  // Nodes with an output that stayed in memory from its first run until after the loss.
  const std::set<NodeId>& waiting() const { return waiting_; }

 private:
  bool IsNode(const Step& step) const {
    return step.kind == StepKind::kForward || step.kind == StepKind::kBackward;
  }

  std::vector<TensorId> Reads(const Step& step) const {
    std::vector<TensorId> reads;
    if (step.kind == StepKind::kLoss) reads = graph_.outputs();
    if (step.kind == StepKind::kForward) reads = graph_.node(step.node()).inputs;
    if (step.kind == StepKind::kBackward) reads = graph_.node(step.node()).backward_reads;
    std::erase_if(reads, [&](TensorId t) { return graph_.is_input(t); });
    return reads;
  }

  // If frees follow from liveness, finds the tensors to release after each step.
  std::optional<std::string> FindLastReads() {
    std::map<TensorId, size_t> last;
    for (size_t k = 0; k < schedule_.steps.size(); ++k) {
      const Step& step = schedule_.steps[k];
      const size_t limit = step.is_free() ? graph_.tensors().size()
                           : IsNode(step) ? graph_.nodes().size()
                                          : 0;
      if (step.kind != StepKind::kLoss && static_cast<size_t>(step.index) >= limit) {
        return fmt::format("step {}: the graph has no node or tensor number {}", k, step.index);
      }
      for (const TensorId t : Reads(step)) last[t] = k;
      if (step.kind != StepKind::kForward) continue;
      for (const TensorId t : graph_.node(step.node()).outputs) {
        if (last.count(t) != 0) dies_after_[last[t]].push_back(t);
        last[t] = k;
      }
    }
    for (const auto& [t, k] : last) dies_after_[k].push_back(t);
    return std::nullopt;
  }

  std::optional<std::string> RunStep(size_t k) {
    PollStop();
    const Step& step = schedule_.steps[k];
    for (const TensorId t : Reads(step)) {
      if (blocks_.count(t) == 0) {
        return fmt::format("\"{}\" is read but not in memory", graph_.tensor(t).name);
      }
    }
    if (order_.has_loss()) NoteWaiting(Reads(step));
    const bool is_explicit = schedule_.frees == FreePolicy::kExplicit;
    std::vector<TensorId> dying;
    if (!is_explicit && dies_after_.count(k) != 0) dying = dies_after_.at(k);
    std::optional<std::string> fault;
    switch (step.kind) {
      case StepKind::kForward:
        fault = Forward(step.node(), &dying);
        break;
      case StepKind::kLoss:
        fault = Loss();
        break;
      case StepKind::kBackward:
        fault = Backward(step.node());
        break;
      case StepKind::kRun:
        return "a run step is allowed only in joint graphs";
      case StepKind::kOut:
      case StepKind::kDrop:
      case StepKind::kIn:
        return "a transfer step is allowed only in joint graphs";
      case StepKind::kFree:
        if (!is_explicit)
          return "a free step, but the schedule frees tensors after their last read";
        dying = {step.tensor()};
        break;
      case StepKind::kFreeGradient:
        if (!gradients_.are_freed()) {
          return "a free of a gradient, but the schedule frees gradients after their last read";
        }
        fault = gradients_.Free(step.tensor());
        break;
    }
    if (fault) return fault;
    for (const TensorId t : dying) {
      if (blocks_.count(t) == 0) {
        return fmt::format("\"{}\" is freed but not in memory", graph_.tensor(t).name);
      }
      slab_.Release(blocks_.at(t));
      blocks_.erase(t);
    }
    return slab_.fault();
  }

  std::optional<std::string> Forward(NodeId id, std::vector<TensorId>* dying) {
    const Node& node = graph_.node(id);
    if (auto fault = order_.Forward(id)) return fault;
    if (runs_[id]++ == 0) {
      if (!order_.has_loss()) ran_before_loss_.insert(id);
    } else {
      const auto sum = CheckedAdd(overhead_.count(), node.forward_cost.count());
      if (!sum) return "the sum of the costs of all forward runs overflows";
      overhead_ = Cost(*sum);
    }
    TensorId written_in_place;
    for (const auto& [output, input] : node.in_place) {
      const auto it = std::find(dying->begin(), dying->end(), input);
      const bool is_equal = graph_.tensor(output).bytes == graph_.tensor(input).bytes;
      if (it == dying->end() || !is_equal) continue;
      written_in_place = output;
      const int block = blocks_.at(input);
      blocks_.erase(input);
      dying->erase(it);
      if (blocks_.count(output) != 0) return StillInMemory(output);
      blocks_[output] = block;
      slab_.HandOver(block, output);
      break;
    }
    for (const TensorId t : node.outputs) {
      if (t == written_in_place) continue;
      if (blocks_.count(t) != 0) return StillInMemory(t);
      const Tensor& tensor = graph_.tensor(t);
      blocks_[t] = slab_.Allocate(LiveBuffer::Tensor(t, tensor.bytes), "\"" + tensor.name + "\"");
    }
    if (node.forward_workspace > Bytes(0)) {
      slab_.Release(AllocateWorkspace(id, node.forward_workspace));
    }
    return std::nullopt;
  }

  std::string StillInMemory(TensorId t) const {
    return fmt::format("\"{}\" is recomputed while it is still in memory", graph_.tensor(t).name);
  }

  int AllocateWorkspace(NodeId id, Bytes bytes) {
    return slab_.Allocate(LiveBuffer::Workspace(id, bytes),
                          "the workspace of \"" + graph_.node(id).name + "\"");
  }

  std::optional<std::string> Loss() {
    if (auto fault = order_.Loss()) return fault;
    gradients_.AfterLoss();
    return std::nullopt;
  }

  std::optional<std::string> Backward(NodeId id) {
    const Node& node = graph_.node(id);
    if (auto fault = order_.Backward(id)) return fault;
    int workspace = -1;
    if (node.backward_workspace > Bytes(0)) {
      workspace = AllocateWorkspace(id, node.backward_workspace);
    }
    auto fault = gradients_.RunBackward(id);
    if (workspace >= 0) slab_.Release(workspace);
    return fault;
  }

  void NoteSaved(const Step& step) {
    is_after_loss_ = step.kind == StepKind::kLoss || (is_after_loss_ && step.is_free());
    if (!is_after_loss_) return;
    saved_ = Bytes(0);
    for (const auto& [tensor, block] : blocks_) saved_ += graph_.tensor(tensor).bytes;
  }

  // Records nodes whose first output version, computed before the loss, is read after the loss and
  // still in memory.
  void NoteWaiting(const std::vector<TensorId>& reads) {
    for (const TensorId t : reads) {
      const NodeId producer = graph_.tensor(t).producer;
      if (runs_[producer] == 1 && ran_before_loss_.count(producer) != 0) waiting_.insert(producer);
    }
  }

  const TensorGraph& graph_;
  const Schedule& schedule_;
  OrderCheck order_;
  Slab slab_;
  Gradients gradients_;
  std::map<size_t, std::vector<TensorId>> dies_after_;
  std::map<TensorId, int> blocks_;  // The block of each tensor that is in memory.
  std::set<NodeId> waiting_;
  std::set<NodeId> ran_before_loss_;
  IdVector<NodeId, int32_t> runs_;
  int32_t peak_step_ = 0;
  bool is_after_loss_ = false;
  Bytes saved_;
  Cost overhead_;
};

// True if the first forward runs are in the graph's order.
bool IsInOwnOrder(const Schedule& schedule) {
  int32_t next = 0;
  for (const Step& step : schedule.steps) {
    if (step.kind != StepKind::kForward || step.index < next) continue;
    if (step.index != next++) return false;
  }
  return true;
}

}  // namespace

Result<Replayed> ReplayNodes(const TensorGraph& graph, const Schedule& schedule,
                             const ReplayOptions& options) {
  ScheduleReplay replay(graph, schedule, options);
  if (const auto fault = replay.Run()) return MakeError(ErrorCode::kCheckFailed, *fault);
  Replayed found{replay.slab(),  replay.peak_step(),     replay.overhead(),
                 replay.saved(), IsInOwnOrder(schedule), {}};
  for (const NodeId id : graph.nodes().ids()) {
    const int32_t recomputed = replay.runs()[id] - 1;
    const NodeAction action = recomputed > 0                    ? NodeAction::kRecompute
                              : replay.waiting().count(id) != 0 ? NodeAction::kKeep
                                                                : NodeAction::kTransient;
    found.decisions.push_back({action, 0, recomputed});
  }
  return found;
}

GraphFigures FiguresOf(const TensorGraph& graph) {
  return {graph.constants(), graph.optimized(), graph.forward_cost(), graph.backward_cost(),
          Cost(0)};
}

}  // namespace ckplan
