#include "lib/joint/expand.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lib/base/stop.h"
#include "lib/schedule/gradients.h"

namespace ckplan {
namespace {

// Follows the gradients' buffers through the backward pass, and their bytes within each step.
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
  // The most that gradients took in this step beyond what was live before it.
  Bytes added() const { return highest_ - before_; }

 private:
  const TensorGraph& graph_;
  std::vector<Bytes> sizes_;
  Bytes live_;
  Bytes before_;
  Bytes highest_;
};

class Expander {
 public:
  Expander(const TensorGraph& graph, const std::vector<NodeId>& order)
      : graph_(graph),
        order_(order),
        sink_(graph),
        gradients_(graph, &sink_),
        gradient_of_(graph.tensors().size()) {}

  Expansion Run() && {
    parts_.name = graph_.name();
    AddTensors();
    AddConstants();
    for (const NodeId id : order_) AddForward(id);
    AddLoss();
    for (auto it = order_.rbegin(); it != order_.rend(); ++it) AddBackward(*it);
    // Gradients of the graph's own inputs live until the end.
    for (const TensorId id : graph_.tensors().ids()) {
      if (gradients_.BufferOf(id) != kNoBuffer) parts_.results.push_back(gradient_of_[id]);
    }
    return {JointGraph::Create(std::move(parts_)).value(), std::move(step_of_)};
  }

 private:
  static constexpr int32_t kNoBuffer = GradientReplay<GradientSink>::kNoBuffer;

  ValueId AddValue(std::string name, Bytes bytes, ValueKind kind, ValueId alias_of = {}) {
    Value value;
    value.file_id = static_cast<int64_t>(parts_.values.size());
    value.name = std::move(name);
    value.bytes = bytes;
    value.kind = kind;
    value.alias_of = alias_of;
    return parts_.values.push_back(std::move(value));
  }

  Operation NewOperation(std::string name, std::string op, Phase phase) const {
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

  // Values of tensors have the tensors' ids.
  void AddTensors() {
    for (const Tensor& tensor : graph_.tensors()) {
      const bool is_input = tensor.kind == TensorKind::kInput;
      AddValue(tensor.name, tensor.bytes, is_input ? ValueKind::kConstant : ValueKind::kValue);
    }
  }

  void AddConstants() {
    const ConstantMemory& constants = graph_.constants();
    AddValue("parameters", constants.parameters, ValueKind::kConstant);
    AddValue("parameter gradients", constants.parameter_gradients, ValueKind::kParameterGradient);
  }

  void AddForward(NodeId id) {
    PollStop();
    const Node& node = graph_.node(id);
    Operation op = NewOperation(node.name, node.op, Phase::kForward);
    op.reads = node.inputs;
    op.writes = node.outputs;
    op.cost = node.forward_cost;
    op.workspace = node.forward_workspace;
    for (const auto& [output, input] : node.in_place) {
      // A schedule reuses one input for one output at most.
      if (output == node.in_place.front().output) op.in_place.push_back({output, input});
    }
    if (IsDeadEnd(id)) {
      ran_.emplace_back(
          id, AddValue(fmt::format("{} has run", node.name), Bytes(0), ValueKind::kValue));
      op.writes.push_back(ran_.back().second);
    }
    Add(std::move(op), Step::Forward(id));
  }

  // Whether nothing but its own backward follows from the node, which may read nothing of it.
  bool IsDeadEnd(NodeId id) const {
    const std::vector<TensorId>& outputs = graph_.node(id).outputs;
    return std::all_of(outputs.begin(), outputs.end(), [&](TensorId output) {
      const std::vector<TensorId>& results = graph_.outputs();
      return graph_.tensor(output).consumers.empty() &&
             std::find(results.begin(), results.end(), output) == results.end();
    });
  }

  void AddLoss() {
    Operation op = NewOperation("loss", "Loss", Phase::kBackward);
    op.reads = graph_.outputs();
    op.may_repeat = false;
    sink_.BeginStep();
    gradients_.Loss();
    for (const TensorId output : graph_.outputs()) {
      if (gradients_.BufferOf(output) == kNoBuffer || !gradient_of_[output].is_none()) continue;
      gradient_of_[output] = NewGradient(output, ValueId());
      op.writes.push_back(gradient_of_[output]);
    }
    op.writes.push_back(AddValue("loss", Bytes(0), ValueKind::kParameterGradient));
    Add(std::move(op), Step::Loss());
  }

  ValueId NewGradient(TensorId of, ValueId alias_of) {
    const Tensor& tensor = graph_.tensor(of);
    return AddValue(fmt::format("gradient of {}", tensor.name), tensor.bytes, ValueKind::kValue,
                    alias_of);
  }

  void AddBackward(NodeId id) {
    PollStop();
    const Node& node = graph_.node(id);
    Operation op = NewOperation(fmt::format("{} backward", node.name), node.op, Phase::kBackward);
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
    const int32_t first_new = sink_.next();
    std::vector<int32_t> buffer_before;
    for (const TensorId input : node.inputs) {
      buffer_before.push_back(gradients_.BufferOf(input));
      if (!gradient_of_[input].is_none()) op.reads.push_back(gradient_of_[input]);
    }
    sink_.BeginStep();
    const TensorId through = FirstWithGradient(node);
    gradients_.Backward(id);
    op.workspace = node.backward_workspace + sink_.added();
    if (!through.is_none()) AddContributions(node, through, buffer_before, first_new, &op);
    op.writes.push_back(AddValue(fmt::format("parameter gradients of {}", node.name), Bytes(0),
                                 ValueKind::kParameterGradient));
    for (const TensorId output : node.outputs) gradient_of_[output] = ValueId();
    Add(std::move(op), Step::Backward(id));
  }

  // The output whose gradient a pass-through shares; none if no gradient arrives at the node.
  TensorId FirstWithGradient(const Node& node) const {
    for (const TensorId output : node.outputs) {
      if (gradients_.BufferOf(output) != kNoBuffer) return output;
    }
    return {};
  }

  // The new state of the gradients that the node has contributed to. What they occupy is no
  // workspace.
  void AddContributions(const Node& node, TensorId through,
                        const std::vector<int32_t>& buffer_before, int32_t first_new,
                        Operation* op) {
    std::vector<TensorId> done;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const TensorId input = node.inputs[i];
      if (!graph_.tensor(input).requires_grad) continue;
      if (std::find(done.begin(), done.end(), input) != done.end()) continue;
      done.push_back(input);
      ValueId base;  // None for a gradient in memory of its own.
      if (gradients_.BufferOf(input) >= first_new) {
        op->workspace -= graph_.tensor(input).bytes;
      } else {
        base = buffer_before[i] == kNoBuffer ? gradient_of_[through] : gradient_of_[input];
      }
      gradient_of_[input] = NewGradient(input, base);
      op->writes.push_back(gradient_of_[input]);
    }
  }

  const TensorGraph& graph_;
  const std::vector<NodeId>& order_;
  JointGraphParts parts_;
  std::vector<Step> step_of_;
  GradientSink sink_;
  GradientReplay<GradientSink> gradients_;
  IdVector<TensorId, ValueId> gradient_of_;  // The newest value of each tensor's gradient.
  // Dead ends, and what tells their backward that they have run; the last node is the last here.
  std::vector<std::pair<NodeId, ValueId>> ran_;
};

}  // namespace

Expansion ExpandTensorGraph(const TensorGraph& graph) {
  std::vector<NodeId> order;
  for (const NodeId id : graph.nodes().ids()) order.push_back(id);
  return ExpandTensorGraph(graph, order);
}

Expansion ExpandTensorGraph(const TensorGraph& graph, const std::vector<NodeId>& order) {
  return Expander(graph, order).Run();
}

Schedule ScheduleOf(const Expansion& expansion, const std::vector<OpId>& runs) {
  Schedule schedule;
  for (const OpId op : runs) {
    schedule.steps.push_back(expansion.step_of[static_cast<size_t>(op.index())]);
  }
  return schedule;
}

std::vector<OpId> RunsOf(const Expansion& expansion, const Schedule& schedule) {
  const size_t nodes = (expansion.step_of.size() - 1) / 2;
  std::vector<OpId> forward(nodes);
  std::vector<OpId> backward(nodes);
  for (size_t op = 0; op < expansion.step_of.size(); ++op) {
    const Step& step = expansion.step_of[op];
    if (step.kind == StepKind::kLoss) continue;
    auto& op_of = step.kind == StepKind::kForward ? forward : backward;
    op_of[static_cast<size_t>(step.index)] = OpId(op);
  }
  std::vector<OpId> runs;
  for (const Step& step : schedule.steps) {
    CKPLAN_CHECK(step.kind != StepKind::kFree, "runs follow liveness");
    if (step.kind == StepKind::kLoss) {
      runs.emplace_back(nodes);
    } else {
      const auto& op_of = step.kind == StepKind::kForward ? forward : backward;
      runs.push_back(op_of[static_cast<size_t>(step.index)]);
    }
  }
  return runs;
}

}  // namespace ckplan
