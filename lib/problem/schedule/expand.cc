#include "lib/problem/schedule/expand.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "lib/base/check.h"
#include "lib/base/stop.h"
#include "lib/problem/schedule/gradients.h"
#include "lib/problem/schedule/schedule.h"

namespace ckplan {
namespace {

// Tracks the gradients' buffers during the backward pass, and their bytes within each step.
class GradientSink {
 public:
  explicit GradientSink(const TensorGraph& graph) : graph_(graph) {}

  void Allocate(int32_t /*buffer*/, TensorId gradient_of) {
    sizes_.push_back(graph_.tensor(gradient_of).bytes);
    live_ += sizes_.back();
    highest_ = std::max(highest_, live_);
  }
  void Release(int32_t buffer) { live_ -= sizes_[static_cast<size_t>(buffer)]; }

  // The number of the next buffer.
  int32_t next() const { return static_cast<int32_t>(sizes_.size()); }
  void BeginStep() { highest_ = before_ = live_; }
  // The maximum growth of gradients within this step.
  Bytes added() const { return highest_ - before_; }

 private:
  const TensorGraph& graph_;
  std::vector<Bytes> sizes_;
  Bytes live_;
  Bytes before_;
  Bytes highest_;
};

// The code that both expansions share.
class Expander {
 public:
  Expander(const TensorGraph& graph, const std::vector<NodeId>& order,
           ValueKind gradients = ValueKind::kParameterGradient)
      : graph_(graph), order_(order), gradients_(gradients), gradient_of_(graph.tensors().size()) {}
  virtual ~Expander() = default;

  Expansion Run() && {
    CKPLAN_CHECK(graph_.backward() == BackwardForm::kByNode,
                 "an expanded graph has backward steps by node");
    parts_.name = graph_.name();
    // A joint graph cannot represent sharded optimizer state.
    const Optimized& optimized = graph_.optimized();
    const bool is_listed = !optimized.tensors.empty() || optimized.bytes == Bytes(0);
    if (is_listed && !optimized.is_unknown &&
        optimized.bytes == graph_.constants().parameter_gradients) {
      parts_.optimized_tensors = optimized.tensors;
    }
    AddTensors();
    AddConstants();
    for (const NodeId id : order_) AddForward(id);
    AddLoss();
    for (auto it = order_.rbegin(); it != order_.rend(); ++it) AddBackward(*it);
    // Gradients of the graph's own inputs live until the end.
    for (const ValueId gradient : gradient_of_) {
      if (!gradient.is_none()) parts_.results.push_back(gradient);
    }
    return {JointGraph::Create(std::move(parts_)).value(), std::move(step_of_),
            std::move(tensor_of_)};
  }

 protected:
  // Returns true if the node needs a marker: a value without bytes that its backward reads, so that
  // backward runs after the node.
  virtual bool MarksRun(NodeId id) const = 0;
  virtual void AfterLoss() {}
  // Adds the gradients of the node's inputs to the backward operation, with the values and the
  // workspace that they need. `through` is the output whose gradient a pass-through shares, or none
  // if the node has no gradient.
  virtual void AddContributions(NodeId id, TensorId through, Operation* op) = 0;
  virtual void AfterBackward(NodeId /*id*/, ValueId /*parameter_gradients*/) {}

  ValueId AddValue(std::string name, Bytes bytes, ValueKind kind, ValueId alias_of = {}) {
    Value value;
    value.file_id = static_cast<int64_t>(parts_.values.size());
    value.name = std::move(name);
    value.bytes = bytes;
    value.kind = kind;
    value.alias_of = alias_of;
    value.storage = alias_of.is_none() ? ValueId(parts_.values.size()) : StorageOf(alias_of);
    tensor_of_.push_back(TensorId());
    return parts_.values.push_back(std::move(value));
  }

  ValueId StorageOf(ValueId value) const { return parts_.values[value].storage; }

  Operation MakeOperation(std::string name, std::string op, Phase phase) const {
    Operation operation;
    operation.file_id = static_cast<int64_t>(parts_.ops.size());
    operation.name = std::move(name);
    operation.op = std::move(op);
    operation.phase = phase;
    return operation;
  }

  void Add(Operation operation, Step step) {
    parts_.ops.push_back(std::move(operation));
    step_of_.push_back(step);
  }

  // A tensor's value has the tensor's id.
  void AddTensors() {
    for (const Tensor& tensor : graph_.tensors()) {
      const bool is_input = tensor.kind == TensorKind::kInput;
      AddValue(tensor.name, tensor.bytes, is_input ? ValueKind::kConstant : ValueKind::kValue);
    }
  }

  void AddConstants() {
    const ConstantMemory& constants = graph_.constants();
    AddValue("parameters", constants.parameters, ValueKind::kParameter);
    Bytes gradients = constants.parameter_gradients;
    for (const Node& node : graph_.nodes()) gradients -= GradientBytesOf(node);
    AddValue("parameter gradients", gradients, ValueKind::kParameterGradient);
  }

  // Returns the bytes of parameter gradients that the node's backward writes as a value.
  Bytes GradientBytesOf(const Node& node) const {
    return gradients_ == ValueKind::kArrivingGradient ? node.parameter_gradients : Bytes(0);
  }

  void AddForward(NodeId id) {
    PollStop();
    const Node& node = graph_.node(id);
    Operation op = MakeOperation(node.name, node.op, Phase::kForward);
    op.reads = node.inputs;
    op.writes = node.outputs;
    op.cost = node.forward_cost;
    op.workspace = node.forward_workspace;
    for (const auto& [output, input] : node.in_place) {
      // In a schedule, at most one output reuses the memory of an input.
      if (output == node.in_place.front().output) op.in_place.push_back({output, input});
    }
    if (MarksRun(id)) {
      ran_.emplace_back(
          id, AddValue(fmt::format("{} has run", node.name), Bytes(0), ValueKind::kValue));
      op.writes.push_back(ran_.back().second);
    }
    Add(std::move(op), Step::Forward(id));
  }

  void AddLoss() {
    Operation op = MakeOperation("loss", std::string(kLossType), Phase::kBackward);
    op.reads = graph_.outputs();
    op.may_repeat = false;
    for (const TensorId output : graph_.outputs()) {
      if (!graph_.tensor(output).requires_grad || !gradient_of_[output].is_none()) continue;
      gradient_of_[output] = AddGradientValue(output, ValueId());
      op.writes.push_back(gradient_of_[output]);
    }
    loss_ = AddValue("loss", Bytes(0), ValueKind::kParameterGradient);
    op.writes.push_back(loss_);
    Add(std::move(op), Step::Loss());
    AfterLoss();
  }

  ValueId AddGradientValue(TensorId of, ValueId alias_of) {
    const Tensor& tensor = graph_.tensor(of);
    const ValueId gradient = AddValue(fmt::format("gradient of {}", tensor.name), tensor.bytes,
                                      ValueKind::kValue, alias_of);
    tensor_of_[gradient] = of;
    return gradient;
  }

  void AddBackward(NodeId id) {
    PollStop();
    const Node& node = graph_.node(id);
    Operation op = MakeOperation(fmt::format("{} backward", node.name), node.op, Phase::kBackward);
    op.may_repeat = false;
    op.cost = node.backward_cost;
    op.reads = node.backward_reads;
    if (!ran_.empty() && ran_.back().first == id) {
      op.reads.push_back(ran_.back().second);
      ran_.pop_back();
    }
    for (const TensorId output : node.outputs) {
      if (!gradient_of_[output].is_none()) op.reads.push_back(gradient_of_[output]);
    }
    op.workspace = node.backward_workspace;
    AddContributions(id, FirstWithGradient(node), &op);
    const ValueId parameters = AddValue(fmt::format("parameter gradients of {}", node.name),
                                        GradientBytesOf(node), gradients_);
    op.writes.push_back(parameters);
    for (const TensorId output : node.outputs) gradient_of_[output] = ValueId();
    Add(std::move(op), Step::Backward(id));
    AfterBackward(id, parameters);
  }

  TensorId FirstWithGradient(const Node& node) const {
    for (const TensorId output : node.outputs) {
      if (!gradient_of_[output].is_none()) return output;
    }
    return {};
  }

  const TensorGraph& graph_;
  const std::vector<NodeId>& order_;
  const ValueKind gradients_;  // The kind of parameter gradients.
  JointGraphParts parts_;
  std::vector<Step> step_of_;
  IdVector<TensorId, ValueId> gradient_of_;  // The newest value of each tensor's gradient.
  IdVector<ValueId, TensorId> tensor_of_;    // The tensor of each gradient.
  ValueId loss_;                             // Has no bytes.
  // The nodes with markers (MarksRun), and the markers, in order.
  std::vector<std::pair<NodeId, ValueId>> ran_;
};

// Expands for a fixed order of backward operations, where it is known which sums are in place.
class FixedOrderExpander final : public Expander {
 public:
  FixedOrderExpander(const TensorGraph& graph, const std::vector<NodeId>& order)
      : Expander(graph, order),
        sink_(graph),
        gradients_(graph, &sink_),
        contributed_by_(graph.tensors().size()) {}

 private:
  static constexpr int32_t kNoBuffer = GradientReplay<GradientSink>::kNoBuffer;

  // True if only the node's own backward depends on the node.
  bool MarksRun(NodeId id) const override {
    const std::vector<TensorId>& outputs = graph_.node(id).outputs;
    return std::all_of(outputs.begin(), outputs.end(), [&](TensorId output) {
      const std::vector<TensorId>& results = graph_.outputs();
      return graph_.tensor(output).consumers.empty() &&
             std::find(results.begin(), results.end(), output) == results.end();
    });
  }

  void AfterLoss() override { gradients_.Loss(); }

  // Adds the new versions of the gradients to which the node contributes. Their own memory does not
  // count as workspace.
  void AddContributions(NodeId id, TensorId through, Operation* op) override {
    const Node& node = graph_.node(id);
    const int32_t first_new = sink_.next();
    std::vector<bool> had_buffer;
    for (const TensorId input : node.inputs) {
      had_buffer.push_back(gradients_.BufferOf(input) != kNoBuffer);
      if (!gradient_of_[input].is_none()) op->reads.push_back(gradient_of_[input]);
    }
    sink_.BeginStep();
    gradients_.Backward(id);
    op->workspace += sink_.added();
    if (through.is_none()) return;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const TensorId input = node.inputs[i];
      if (!graph_.tensor(input).requires_grad) continue;
      if (std::exchange(contributed_by_[input], id) == id) continue;
      ValueId base;  // None for a gradient with its own memory.
      if (gradients_.BufferOf(input) >= first_new) {
        op->workspace -= graph_.tensor(input).bytes;
      } else {
        base = had_buffer[i] ? gradient_of_[input] : gradient_of_[through];
      }
      gradient_of_[input] = AddGradientValue(input, base);
      op->writes.push_back(gradient_of_[input]);
    }
  }

  GradientSink sink_;
  GradientReplay<GradientSink> gradients_;
  IdVector<TensorId, NodeId> contributed_by_;  // The last node that wrote its gradient.
};

// Expands for plans in any order. Values without bytes express the order that does not follow from
// gradients: a node that no gradient reaches runs backward after the loss and after its own forward
// run, and nodes that train the same parameter run backward one after the other.
class AnyOrderExpander final : public Expander {
 public:
  AnyOrderExpander(const TensorGraph& graph, const std::vector<NodeId>& order, ValueKind gradients)
      : Expander(graph, order, gradients),
        is_reached_(BackwardPrecedence(graph).is_reached),
        state_of_(graph.tensors().size(), kNoState),
        passed_by_(graph.tensors().size()) {}

 private:
  // The state of a gradient while a node contributes to it, input by input.
  enum class State : uint8_t {
    kAbsent,
    kOld,     // The sum of other nodes' contributions, in memory that may be shared.
    kPassed,  // Shares the memory of the output's gradient.
    kOwn,     // The first contribution, in its own memory.
    kSum,     // The old sum plus this node's contributions, in its own memory.
  };
  struct Contribution {
    Bytes kept;       // The maximum that stays in memory.
    Bytes temporary;  // Needed until the contribution is added.
  };
  using States = std::vector<std::pair<TensorId, State>>;
  static constexpr int32_t kNoState = -1;

  bool MarksRun(NodeId id) const override { return !is_reached_[id]; }

  void AddContributions(NodeId id, TensorId through, Operation* op) override {
    if (through.is_none()) return op->reads.push_back(loss_);
    const Node& node = graph_.node(id);
    for (const TensorId input : node.gradient_passthrough) passed_by_[input] = id;
    States states;
    std::vector<Contribution> contributions;
    for (const TensorId input : node.inputs) {
      if (!graph_.tensor(input).requires_grad) continue;
      contributions.push_back(Contribute(id, through, input, StateOf(input, &states)));
    }
    op->workspace += WorkspaceOf(contributions);
    added_to_.clear();
    for (const auto& [input, state] : states) {
      state_of_[input] = kNoState;
      AddGradient(input, state, through, op);
    }
    for (const int32_t parameter : node.shared_parameters) {
      const auto last = trained_by_.find(parameter);
      if (last != trained_by_.end()) op->reads.push_back(last->second);
    }
  }

  State* StateOf(TensorId input, States* states) {
    int32_t& at = state_of_[input];
    if (at == kNoState) {
      at = static_cast<int32_t>(states->size());
      states->emplace_back(input, gradient_of_[input].is_none() ? State::kAbsent : State::kOld);
    }
    return &(*states)[static_cast<size_t>(at)].second;
  }

  // Applies one contribution by the rules of lib/problem/schedule/gradients.h.
  Contribution Contribute(NodeId id, TensorId through, TensorId input, State* state) const {
    const Bytes bytes = graph_.tensor(input).bytes;
    const bool passes = graph_.tensor(through).bytes == bytes && passed_by_[input] == id;
    const Bytes temporary = passes ? Bytes(0) : bytes;
    switch (*state) {
      case State::kAbsent:
        *state = passes ? State::kPassed : State::kOwn;
        return {temporary, Bytes(0)};
      case State::kPassed:
        *state = State::kOwn;  // A copy: the output's gradient is needed until the step ends.
        return {bytes, temporary};
      case State::kOld:
        *state = State::kSum;
        return {bytes, temporary};
      case State::kOwn:
      case State::kSum:
        break;
    }
    return {Bytes(0), temporary};
  }

  // Returns the memory that the contributions need in addition to what they keep. While a temporary
  // lives, the memory that later contributions keep is still free.
  static Bytes WorkspaceOf(const std::vector<Contribution>& contributions) {
    Bytes workspace;
    Bytes kept_later;
    for (auto it = contributions.rbegin(); it != contributions.rend(); ++it) {
      workspace = std::max(workspace, it->temporary - kept_later);
      kept_later += it->kept;
    }
    return workspace;
  }

  void AddGradient(TensorId input, State state, TensorId through, Operation* op) {
    const ValueId old = gradient_of_[input];
    ValueId base;
    if (state == State::kPassed) base = gradient_of_[through];
    // When gradients that share memory change, all but the last are copied: by then, the others
    // have left that memory.
    const bool shares_old = state == State::kSum && !added_to_.insert(StorageOf(old)).second;
    if (shares_old) base = old;
    gradient_of_[input] = AddGradientValue(input, base);
    op->writes.push_back(gradient_of_[input]);
    if (old.is_none()) return;
    op->reads.push_back(old);
    if (!shares_old) op->in_place.push_back({gradient_of_[input], old});
  }

  void AfterBackward(NodeId id, ValueId parameter_gradients) override {
    if (!is_reached_[id]) return;
    for (const int32_t parameter : graph_.node(id).shared_parameters) {
      trained_by_[parameter] = parameter_gradients;
    }
  }

  const IdVector<NodeId, bool> is_reached_;
  // state_of_: the index of each input of the current node among its states. passed_by_: the last
  // node that passed a gradient through to each tensor.
  IdVector<TensorId, int32_t> state_of_;
  IdVector<TensorId, NodeId> passed_by_;
  std::set<ValueId> added_to_;  // The memory that sums of the current operation may reuse.
  std::map<int32_t, ValueId> trained_by_;  // The last gradient of each shared parameter.
};

std::vector<NodeId> OwnForwardOrder(const TensorGraph& graph) {
  std::vector<NodeId> order;
  for (const NodeId id : graph.nodes().ids()) order.push_back(id);
  return order;
}

}  // namespace

Expansion ExpandTensorGraph(const TensorGraph& graph) {
  return ExpandTensorGraph(graph, OwnForwardOrder(graph));
}

Expansion ExpandTensorGraph(const TensorGraph& graph, const std::vector<NodeId>& order) {
  return FixedOrderExpander(graph, order).Run();
}

Expansion ExpandForAnyOrder(const TensorGraph& graph) {
  const std::vector<NodeId> order = OwnForwardOrder(graph);
  return AnyOrderExpander(graph, order, ValueKind::kParameterGradient).Run();
}

Expansion ExpandWithArrivingGradients(const TensorGraph& graph) {
  const std::vector<NodeId> order = OwnForwardOrder(graph);
  return AnyOrderExpander(graph, order, ValueKind::kArrivingGradient).Run();
}

Schedule ScheduleOf(const Expansion& expansion, const std::vector<OpId>& runs) {
  return ScheduleOf(expansion.step_of, runs);
}

Schedule ScheduleOf(const std::vector<Step>& step_of, const std::vector<OpId>& runs) {
  Schedule schedule;
  for (const OpId op : runs) schedule.steps.push_back(step_of[static_cast<size_t>(op.index())]);
  return schedule;
}

std::vector<OpId> RunsOf(const Expansion& expansion, const Schedule& schedule) {
  return RunsOf(expansion.step_of, schedule);
}

std::vector<OpId> RunsOf(const std::vector<Step>& step_of, const Schedule& schedule) {
  const size_t nodes = (step_of.size() - 1) / 2;
  std::vector<OpId> forward(nodes);
  std::vector<OpId> backward(nodes);
  for (size_t op = 0; op < step_of.size(); ++op) {
    const Step& step = step_of[op];
    if (step.kind == StepKind::kLoss) continue;
    auto& op_of = step.kind == StepKind::kForward ? forward : backward;
    op_of[static_cast<size_t>(step.index)] = OpId(op);
  }
  std::vector<OpId> runs;
  for (const Step& step : schedule.steps) {
    CKPLAN_CHECK(step.kind != StepKind::kFree, "the schedule frees by liveness");
    if (step.kind == StepKind::kLoss) {
      runs.emplace_back(nodes);
    } else {
      const auto& op_of = step.kind == StepKind::kForward ? forward : backward;
      runs.push_back(op_of[static_cast<size_t>(step.index)]);
    }
  }
  return runs;
}

std::vector<OpId> DelayUntilReadable(const JointGraph& graph, const std::vector<OpId>& runs) {
  IdVector<OpId, bool> has_run(graph.ops().size());
  // Returns the first producer of a read of `op` that has not run, or none if all have.
  const auto missing_producer = [&](OpId op) {
    for (const ValueId read : graph.op(op).reads) {
      const OpId producer = graph.value(read).producer;
      if (!producer.is_none() && !has_run[producer]) return producer;
    }
    return OpId();
  };
  std::vector<OpId> ordered;
  ordered.reserve(runs.size());
  IdVector<OpId, std::vector<OpId>> waiting_for(graph.ops().size());
  std::vector<OpId> ready;
  for (const OpId op : runs) {
    PollStop();
    ready = {op};
    for (size_t i = 0; i < ready.size(); ++i) {
      const OpId next = ready[i];
      if (const OpId producer = missing_producer(next); !producer.is_none()) {
        waiting_for[producer].push_back(next);
        continue;
      }
      ordered.push_back(next);
      has_run[next] = true;
      for (const OpId waiter : std::exchange(waiting_for[next], {})) ready.push_back(waiter);
    }
  }
  CKPLAN_CHECK(ordered.size() == runs.size(), "every producer of a delayed operation runs");
  return ordered;
}

Schedule InFormOf(const TrainingStep& step, const Schedule& schedule) {
  if (!step.is_joint()) return schedule;
  return ScheduleOfRuns(DelayUntilReadable(step.joint(), RunsOf(step.step_of(), schedule)));
}

}  // namespace ckplan
