#include "lib/plan/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "lib/base/stop.h"

namespace ckplan {
namespace {

// Memory as the plan lays it out: each allocation takes the plan's next offset.
class Slab {
 public:
  // Without offsets only the bytes are counted.
  explicit Slab(const std::vector<Bytes>* offsets) : offsets_(offsets) {}

  int Allocate(const LiveBuffer& buffer, const std::string& what) {
    const auto id = static_cast<int>(blocks_.size());
    const Bytes bytes = buffer.bytes;
    Block block{bytes, Bytes(0), what, buffer};
    if (offsets_ != nullptr) {
      if (blocks_.size() >= offsets_->size()) {
        Fault(fmt::format("the arena has no offset for buffer {} ({})", id, what));
      } else {
        block.offset = (*offsets_)[blocks_.size()];
        Place(block);
      }
    }
    blocks_.push_back(block);
    live_ += bytes;
    if (live_ > highest_) {
      highest_ = live_;
      peak_id_ = id;
    }
    return id;
  }

  // From now on the block holds `tensor`.
  void HandOver(int id, TensorId tensor) {
    Block& block = blocks_[static_cast<size_t>(id)];
    // The time is noted: AtPeak asks which tensor the block held then.
    block.heirs.emplace_back(static_cast<int>(blocks_.size()), tensor);
  }

  void Release(int id) {
    Block& block = blocks_[static_cast<size_t>(id)];
    block.released_before = static_cast<int>(blocks_.size());
    live_ -= block.bytes;
    if (offsets_ == nullptr || block.bytes == Bytes(0)) return;
    const auto it = by_offset_.find(block.offset);
    if (it != by_offset_.end() && it->second.id == id) by_offset_.erase(it);
  }

  Bytes live() const { return live_; }
  Bytes highest() const { return highest_; }
  Bytes end() const { return end_; }
  size_t allocations() const { return blocks_.size(); }
  const std::optional<std::string>& fault() const { return fault_; }

  // What was in memory when the peak was reached first. Time is counted in allocations: block 7 is
  // allocated at time 7.
  std::vector<LiveBuffer> AtPeak() const {
    std::vector<LiveBuffer> live;
    for (int id = 0; id <= peak_id_; ++id) {
      const Block& block = blocks_[static_cast<size_t>(id)];
      if (block.bytes == Bytes(0) || block.released_before <= peak_id_) continue;
      live.push_back(block.buffer);
      for (const auto& [time, heir] : block.heirs) {
        if (time <= peak_id_) live.back().index = heir.index();
      }
    }
    return live;
  }

 private:
  struct Block {
    Bytes bytes;
    Bytes offset;
    std::string what;
    LiveBuffer buffer;                                      // As it was allocated.
    std::vector<std::pair<int, TensorId>> heirs = {};       // Tensors that took it over, and when.
    int released_before = std::numeric_limits<int>::max();  // The next time.
  };
  struct Placed {
    Bytes bytes;
    int id;
  };

  void Fault(std::string text) {
    if (!fault_) fault_ = std::move(text);
  }

  void Place(const Block& block) {
    if (block.offset < Bytes(0)) Fault(fmt::format("{} has a negative offset", block.what));
    end_ = std::max(end_, block.offset + block.bytes);
    if (block.bytes == Bytes(0)) return;
    const auto after = by_offset_.lower_bound(block.offset);
    if (after != by_offset_.end() && after->first < block.offset + block.bytes) {
      Overlap(block, after->second);
    }
    if (after != by_offset_.begin()) {
      const auto before = std::prev(after);
      if (before->first + before->second.bytes > block.offset) Overlap(block, before->second);
    }
    by_offset_[block.offset] = {block.bytes, static_cast<int>(blocks_.size())};
  }

  void Overlap(const Block& block, const Placed& other) {
    Fault(fmt::format("in the arena {} overlaps {}, which lives at the same time", block.what,
                      blocks_[static_cast<size_t>(other.id)].what));
  }

  const std::vector<Bytes>* offsets_;
  std::vector<Block> blocks_;
  std::map<Bytes, Placed> by_offset_;
  Bytes live_;
  Bytes highest_;
  int peak_id_ = -1;  // The allocation that reached the peak first.
  Bytes end_;
  std::optional<std::string> fault_;
};

// The gradients of one backward pass, buffer by buffer.
class Gradients {
 public:
  Gradients(const TensorGraph& graph, Slab* slab) : graph_(graph), slab_(slab) {}

  void AfterLoss() {
    for (const TensorId t : graph_.outputs()) {
      if (graph_.tensor(t).requires_grad && held_.count(t) == 0) held_[t] = New(t);
    }
  }

  void Through(const Node& node) {
    std::vector<TensorId> arrived;
    for (const TensorId t : node.outputs) {
      if (held_.count(t) != 0) arrived.push_back(t);
    }
    if (arrived.empty()) return;
    for (const TensorId t : node.inputs) {
      if (graph_.tensor(t).requires_grad) Give(node, arrived.front(), t);
    }
    for (const TensorId t : arrived) {
      Forget(held_.at(t));
      held_.erase(t);
    }
  }

 private:
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
  void MakeOwn(TensorId t) {
    const int shared = held_.at(t);
    if (holders_.at(shared) == 1) return;
    held_[t] = New(t);
    Forget(shared);
  }

  void Give(const Node& node, TensorId from, TensorId to) {
    const bool is_listed =
        std::count(node.gradient_passthrough.begin(), node.gradient_passthrough.end(), to) > 0;
    if (is_listed && graph_.tensor(from).bytes == graph_.tensor(to).bytes) {
      if (held_.count(to) != 0) return MakeOwn(to);
      held_[to] = held_.at(from);
      ++holders_.at(held_.at(from));
      return;
    }
    const int contribution = New(to);
    if (held_.count(to) == 0) {
      held_[to] = contribution;
      return;
    }
    MakeOwn(to);
    Forget(contribution);
  }

  const TensorGraph& graph_;
  Slab* slab_;
  std::map<TensorId, int> held_;
  std::map<int, int> holders_;
};

// Replays steps one at a time; stops at the first fault, since later ones may follow from it.
class Replay {
 public:
  Replay(const TensorGraph& graph, const Schedule& schedule, const std::vector<Bytes>* offsets)
      : graph_(graph), schedule_(schedule), slab_(offsets), gradients_(graph, &slab_) {
    runs_.resize(graph.nodes().size());
    has_run_backward_.resize(graph.nodes().size());
  }

  std::optional<std::string> Run() {
    if (auto fault = FindLastReads()) return fault;
    for (size_t k = 0; k < schedule_.steps.size(); ++k) {
      const Bytes highest = slab_.highest();
      if (auto fault = RunStep(k)) return fmt::format("step {}: {}", k, *fault);
      if (slab_.highest() > highest) peak_step_ = static_cast<int32_t>(k);
    }
    if (backward_count_ != graph_.nodes().size()) {
      return fmt::format("{} of {} nodes ran backward", backward_count_, graph_.nodes().size());
    }
    if (!blocks_.empty()) {
      return fmt::format("\"{}\" is still in memory at the end",
                         graph_.tensor(blocks_.begin()->first).name);
    }
    return slab_.fault();
  }

  const Slab& slab() const { return slab_; }
  int32_t peak_step() const { return peak_step_; }
  Cost overhead() const { return overhead_; }
  const IdVector<NodeId, int32_t>& runs() const { return runs_; }
  const std::vector<NodeId>& order() const { return order_; }
  // Nodes of which an output waited in memory from its first run until after the loss.
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

  // With frees by liveness: finds what is released after each step.
  std::optional<std::string> FindLastReads() {
    std::map<TensorId, size_t> last;
    for (size_t k = 0; k < schedule_.steps.size(); ++k) {
      const Step& step = schedule_.steps[k];
      const size_t limit = step.kind == StepKind::kFree ? graph_.tensors().size()
                           : IsNode(step)               ? graph_.nodes().size()
                                                        : 0;
      if (step.kind != StepKind::kLoss && static_cast<size_t>(step.index) >= limit) {
        return fmt::format("step {}: there is no node or tensor of number {}", k, step.index);
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
    if (loss_count_ > 0) NoteWaiting(Reads(step));
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
      case StepKind::kFree:
        if (!is_explicit) return "a free in a schedule whose frees follow from liveness";
        dying = {step.tensor()};
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
    if (runs_[id]++ == 0) {
      if (loss_count_ > 0) return fmt::format("\"{}\" runs first after the loss", node.name);
      order_.push_back(id);
    } else {
      overhead_ += node.forward_cost;
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
      if (blocks_.count(output) != 0) return StillThere(output);
      blocks_[output] = block;
      slab_.HandOver(block, output);
      break;
    }
    for (const TensorId t : node.outputs) {
      if (t == written_in_place) continue;
      if (blocks_.count(t) != 0) return StillThere(t);
      const Tensor& tensor = graph_.tensor(t);
      blocks_[t] = slab_.Allocate(LiveBuffer::Tensor(t, tensor.bytes), "\"" + tensor.name + "\"");
    }
    if (node.forward_workspace > Bytes(0)) {
      slab_.Release(AllocateWorkspace(id, node.forward_workspace));
    }
    return std::nullopt;
  }

  std::string StillThere(TensorId t) const {
    return fmt::format("\"{}\" is made again while it is in memory", graph_.tensor(t).name);
  }

  int AllocateWorkspace(NodeId id, Bytes bytes) {
    return slab_.Allocate(LiveBuffer::Workspace(id, bytes),
                          "the workspace of \"" + graph_.node(id).name + "\"");
  }

  std::optional<std::string> Loss() {
    if (++loss_count_ > 1) return "a second loss";
    if (order_.size() != graph_.nodes().size()) return "not every node has run forward";
    gradients_.AfterLoss();
    return std::nullopt;
  }

  std::optional<std::string> Backward(NodeId id) {
    const Node& node = graph_.node(id);
    if (loss_count_ == 0) return "a backward before the loss";
    if (has_run_backward_[id]) return fmt::format("\"{}\" runs backward twice", node.name);
    if (order_[order_.size() - 1 - backward_count_] != id) {
      return fmt::format("\"{}\" runs backward out of the reverse forward order", node.name);
    }
    has_run_backward_[id] = true;
    ++backward_count_;
    int workspace = -1;
    if (node.backward_workspace > Bytes(0)) {
      workspace = AllocateWorkspace(id, node.backward_workspace);
    }
    gradients_.Through(node);
    if (workspace >= 0) slab_.Release(workspace);
    return std::nullopt;
  }

  // A first version that is read after the loss has waited for it in memory.
  void NoteWaiting(const std::vector<TensorId>& reads) {
    for (const TensorId t : reads) {
      const NodeId producer = graph_.tensor(t).producer;
      if (runs_[producer] == 1) waiting_.insert(producer);
    }
  }

  const TensorGraph& graph_;
  const Schedule& schedule_;
  Slab slab_;
  Gradients gradients_;
  std::map<size_t, std::vector<TensorId>> dies_after_;
  std::map<TensorId, int> blocks_;  // What is in memory, and in which block.
  std::set<NodeId> waiting_;
  IdVector<NodeId, int32_t> runs_;
  IdVector<NodeId, bool> has_run_backward_;
  std::vector<NodeId> order_;
  size_t backward_count_ = 0;
  int loss_count_ = 0;
  int32_t peak_step_ = 0;
  Cost overhead_;
};

Schedule WithoutRecomputation(const std::vector<NodeId>& order) {
  Schedule schedule;
  for (const NodeId id : order) schedule.steps.push_back(Step::Forward(id));
  schedule.steps.push_back(Step::Loss());
  for (size_t i = order.size(); i-- > 0;) schedule.steps.push_back(Step::Backward(order[i]));
  return schedule;
}

template <typename T>
void Compare(std::string_view what, T claimed, T replayed, std::vector<std::string>* faults) {
  if (claimed == replayed) return;
  faults->push_back(fmt::format("{}: the plan says {}, the replay finds {}", what, claimed.count(),
                                replayed.count()));
}

void ComparePeak(const TensorGraph& graph, const Plan& plan, const Replay& replay,
                 std::vector<std::string>* faults) {
  if (!plan.peak) return;
  if (plan.peak->step != replay.peak_step()) {
    faults->push_back(fmt::format("peak: the plan says step {}, the replay finds step {}",
                                  plan.peak->step, replay.peak_step()));
    return;
  }
  const std::vector<LiveBuffer> live = replay.slab().AtPeak();
  const std::vector<LiveBuffer>& claimed = plan.peak->live;
  const auto row = std::mismatch(claimed.begin(), claimed.end(), live.begin(), live.end()).second;
  if (row != live.end()) {
    const bool is_workspace = row->kind == BufferKind::kWorkspace;
    faults->push_back(
        fmt::format("peak: row {} must be {}\"{}\" with {} bytes", row - live.begin(),
                    is_workspace                         ? "the workspace of "
                    : row->kind == BufferKind::kGradient ? "the gradient of "
                                                         : "",
                    is_workspace ? graph.node(row->node()).name : graph.tensor(row->tensor()).name,
                    row->bytes.count()));
  } else if (claimed.size() > live.size()) {
    faults->push_back(fmt::format("peak: the plan has {} rows, the replay finds {} buffers",
                                  claimed.size(), live.size()));
  }
}

void CompareDecisions(const TensorGraph& graph, const Plan& plan, const Replay& replay,
                      std::vector<std::string>* faults) {
  if (plan.decisions.size() != graph.nodes().size()) {
    faults->push_back(fmt::format("the plan decides on {} nodes, the graph has {}",
                                  plan.decisions.size(), graph.nodes().size()));
    return;
  }
  for (const NodeId id : graph.nodes().ids()) {
    const NodeDecision& decision = plan.decisions[id];
    const int32_t recomputed = replay.runs()[id] - 1;
    const NodeAction action = recomputed > 0                    ? NodeAction::kRecompute
                              : replay.waiting().count(id) != 0 ? NodeAction::kKeep
                                                                : NodeAction::kTransient;
    if (decision.recompute_count == recomputed && decision.action == action) continue;
    faults->push_back(fmt::format(
        "node \"{}\": the plan says {} with {} recomputations, the steps say {} with {}",
        graph.node(id).name, NameOf(decision.action), decision.recompute_count, NameOf(action),
        recomputed));
  }
}

}  // namespace

std::vector<std::string> CheckPlan(const TensorGraph& graph, const Plan& plan) {
  std::vector<std::string> faults;
  Replay replay(graph, plan.schedule, &plan.offsets);
  if (const auto fault = replay.Run()) return {*fault};
  const Schedule keep_all = WithoutRecomputation(replay.order());
  Replay baseline(graph, keep_all, nullptr);
  if (const auto fault = baseline.Run()) return {"without recomputation: " + *fault};

  const PlanFigures& figures = plan.figures;
  Compare("peak_bytes", figures.peak, replay.slab().highest(), &faults);
  Compare("baseline_peak_bytes", figures.baseline_peak, baseline.slab().highest(), &faults);
  Compare("arena_bytes", figures.arena, replay.slab().end(), &faults);
  if (const auto& fixed = figures.static_allocations;
      fixed && (fixed->sharing > fixed->inplace || fixed->inplace > fixed->none)) {
    faults.push_back("static_allocation_bytes: each strategy needs no more than the one before it");
  }
  Compare("overhead_cost", figures.overhead, replay.overhead(), &faults);
  Compare("forward_cost", figures.forward_cost, graph.forward_cost(), &faults);
  Compare("backward_cost", figures.backward_cost, graph.backward_cost(), &faults);
  Compare("parameters", figures.constants.parameters, graph.constants().parameters, &faults);
  Compare("parameter_gradients", figures.constants.parameter_gradients,
          graph.constants().parameter_gradients, &faults);
  Compare("inputs", figures.constants.inputs, graph.constants().inputs, &faults);
  if (plan.offsets.size() != replay.slab().allocations()) {
    faults.push_back(fmt::format("the arena has {} offsets for {} buffers", plan.offsets.size(),
                                 replay.slab().allocations()));
  }
  const std::optional<Bytes> budget = plan.request.budget.in_bytes();
  if (budget && replay.slab().highest() > *budget) {
    faults.push_back(fmt::format("the peak of {} bytes is above the budget of {} bytes",
                                 replay.slab().highest().count(), budget->count()));
  }
  ComparePeak(graph, plan, replay, &faults);
  CompareDecisions(graph, plan, replay, &faults);
  return faults;
}

}  // namespace ckplan
