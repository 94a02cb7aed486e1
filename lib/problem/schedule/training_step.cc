#include "lib/problem/schedule/training_step.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/base/lists.h"
#include "lib/problem/graph/joint_graph.h"
#include "lib/problem/graph/origins.h"

namespace ckplan {
namespace {

const std::vector<TensorId> kNoTensors;

Bytes ExtraMemory(const TensorGraph& graph, const Node& node) {
  Bytes in_place;  // At most one output is in place.
  for (const auto& [output, input] : node.in_place) {
    if (graph.tensor(output).bytes != graph.tensor(input).bytes) continue;
    in_place = std::max(in_place, graph.tensor(output).bytes);
  }
  return node.forward_workspace - in_place;
}

Bytes ExtraMemory(const JointGraph& graph, const Operation& op) {
  Bytes sum = op.workspace;
  std::vector<TensorId> written;
  UniqueAppender in_place(written);
  for (const auto& [write, read] : op.in_place) {
    if (graph.value(write).bytes == graph.value(read).bytes) in_place.Append(write);
  }
  for (const TensorId write : written) sum -= graph.counted_bytes(write);
  return sum;
}

}  // namespace

TrainingStep::TrainingStep(const TensorGraph& graph, const ModuleCalls* modules)
    : forward_(&graph), modules_(modules != nullptr && !modules->empty() ? modules : nullptr) {}

TrainingStep::TrainingStep(const JointGraph& graph) : joint_(&graph) {}

TrainingStep::TrainingStep(const JointGraph& graph, const TensorGraph& forward,
                           const std::vector<Step>& step_of)
    : forward_(&forward), joint_(&graph), step_of_(&step_of) {}

TrainingStep TrainingStep::WithJoint(const JointGraph& graph) const {
  TrainingStep other = *this;
  other.joint_ = &graph;
  return other;
}

TrainingStep TrainingStep::WithLink(const Link* link) const {
  TrainingStep other = *this;
  other.link_ = link;
  return other;
}

const std::string& TrainingStep::name() const {
  return is_joint() ? joint_->name() : forward_->name();
}

size_t TrainingStep::node_count() const {
  return is_joint() ? joint_->ops().size() : forward_->nodes().size();
}

size_t TrainingStep::tensor_count() const {
  return is_joint() ? joint_->values().size() : forward_->tensors().size();
}

std::string TrainingStep::NameOf(NodeId node) const {
  return is_joint() ? ShownName(*joint_, node) : ShownName(*forward_, node);
}

std::string TrainingStep::NameOf(TensorId id) const {
  const std::string& name = RawNameOf(id);
  return name.empty() ? fmt::format("tensor {}", FileIdOf(id)) : name;
}

const std::string& TrainingStep::RawNameOf(NodeId node) const {
  return is_joint() ? joint_->op(node).name : forward_->node(node).name;
}

const std::string& TrainingStep::RawNameOf(TensorId tensor) const {
  return is_joint() ? joint_->value(tensor).name : forward_->tensor(tensor).name;
}

int64_t TrainingStep::FileIdOf(NodeId node) const {
  return is_joint() ? joint_->op(node).file_id : forward_->node(node).file_id;
}

int64_t TrainingStep::FileIdOf(TensorId tensor) const {
  return is_joint() ? joint_->value(tensor).file_id : forward_->tensor(tensor).file_id;
}

const std::string& TrainingStep::OpOf(NodeId node) const {
  return is_joint() ? joint_->op(node).op : forward_->node(node).op;
}

std::vector<std::string> TrainingStep::ModulesOf(NodeId node) const {
  if (is_joint()) {
    const Operation& op = joint_->op(node);
    if (op.module.empty()) return ModulesInName(op.name);
    return ModulesOnPath(op.module, op.module.find('/') == std::string::npos ? '.' : '/');
  }
  if (modules_ == nullptr) return ModulesInName(forward_->node(node).name);
  const int32_t call = modules_->call_of[node];
  return call < 0 ? std::vector<std::string>() : ModulesOnPath(modules_->call(call).path);
}

NodeId TrainingStep::ProducerOf(TensorId tensor) const {
  return is_joint() ? joint_->value(tensor).producer : forward_->tensor(tensor).producer;
}

TensorId TrainingStep::StorageOf(TensorId tensor) const {
  return is_joint() ? joint_->value(tensor).storage : tensor;
}

Bytes TrainingStep::BytesOf(TensorId tensor) const {
  return is_joint() ? joint_->value(tensor).bytes : forward_->tensor(tensor).bytes;
}

bool TrainingStep::CountsInPeak(TensorId id) const {
  if (!is_joint()) return !forward_->is_input(id);
  const Value& value = joint_->value(id);
  return value.alias_of.is_none() && IsCountedInPeak(value.kind) && !value.producer.is_none();
}

const std::vector<NodeId>& TrainingStep::ReadersOf(TensorId tensor) const {
  return is_joint() ? joint_->value(tensor).readers : forward_->tensor(tensor).consumers;
}

const std::vector<TensorId>& TrainingStep::OutputsOf(NodeId node) const {
  return is_joint() ? joint_->op(node).writes : forward_->node(node).outputs;
}

Cost TrainingStep::RunCostOf(NodeId node) const {
  return is_joint() ? joint_->op(node).cost : forward_->node(node).forward_cost;
}

Cost TrainingStep::CostOf(const Step& step) const {
  if (step.kind == StepKind::kBackward) return forward_->node(step.node()).backward_cost;
  const bool is_run = step.kind == StepKind::kForward || step.kind == StepKind::kRun;
  return is_run ? RunCostOf(step.node()) : Cost(0);
}

bool TrainingStep::CanRerun(NodeId node) const {
  return !is_joint() || joint_->op(node).may_repeat;
}

Step TrainingStep::RunOf(NodeId node) const {
  return is_joint() ? Step::Run(node) : Step::Forward(node);
}

const std::vector<TensorId>& TrainingStep::ReadsOf(const Step& step) const {
  if (step.is_transfer()) return kNoTensors;
  return is_joint() ? joint_->op(step.node()).reads : ckplan::ReadsOf(*forward_, step);
}

const std::vector<TensorId>& TrainingStep::MakesOf(const Step& step) const {
  const bool is_run = step.kind == StepKind::kForward || step.kind == StepKind::kRun;
  return is_run ? OutputsOf(step.node()) : kNoTensors;
}

bool TrainingStep::IsBackward(const Step& step) const {
  if (step.is_transfer()) return false;
  return is_joint() ? joint_->op(step.node()).phase == Phase::kBackward
                    : step.kind == StepKind::kBackward;
}

bool TrainingStep::HasBackward() const {
  return !is_joint() ||
         std::any_of(joint_->ops().begin(), joint_->ops().end(),
                     [](const Operation& op) { return op.phase == Phase::kBackward; });
}

Bytes TrainingStep::OwnNeedOf(const Step& step) const {
  std::vector<TensorId> needed;
  UniqueAppender appender(needed);
  for (const std::vector<TensorId>* const tensors : {&ReadsOf(step), &MakesOf(step)}) {
    for (const TensorId tensor : *tensors) appender.Append(StorageOf(tensor));
  }
  Bytes sum;
  for (const TensorId tensor : needed) sum += CountsInPeak(tensor) ? BytesOf(tensor) : Bytes(0);
  switch (step.kind) {
    case StepKind::kForward:
      return sum + ExtraMemory(*forward_, forward_->node(step.node()));
    case StepKind::kBackward:
      return sum + forward_->node(step.node()).backward_workspace;
    case StepKind::kRun:
      return sum + ExtraMemory(*joint_, joint_->op(step.node()));
    case StepKind::kOut:
    case StepKind::kDrop:
    case StepKind::kIn:
      return BytesOf(step.tensor());
    case StepKind::kLoss:
    case StepKind::kFree:
    case StepKind::kFreeGradient:
      break;
  }
  return sum;
}

Schedule TrainingStep::KeepAll() const {
  return is_joint() ? ScheduleOfRuns(OwnOrder(*joint_)) : KeepAllInOwnOrder(*forward_);
}

Cost TrainingStep::forward_cost() const {
  return is_joint() ? PhaseCost(*joint_, Phase::kForward) : forward_->forward_cost();
}

Cost TrainingStep::backward_cost() const {
  return is_joint() ? PhaseCost(*joint_, Phase::kBackward) : forward_->backward_cost();
}

Cost TrainingStep::MinOverhead() const {
  return is_joint() ? ckplan::MinOverhead(*joint_) : Cost(0);
}

ConstantMemory TrainingStep::constants() const {
  return is_joint() ? ConstantsOf(*joint_) : forward_->constants();
}

Optimized TrainingStep::optimized() const {
  return is_joint() ? OptimizedOf(*joint_) : forward_->optimized();
}

std::string DescribeStep(const TrainingStep& of, const Step& step, bool has_run) {
  switch (step.kind) {
    case StepKind::kForward:
      return (has_run ? "recomputation of " : "forward of ") + of.NameOf(step.node());
    case StepKind::kLoss:
      return "the loss";
    case StepKind::kBackward:
      return "backward of " + of.NameOf(step.node());
    case StepKind::kFree:
      return "the release of " + of.NameOf(step.tensor());
    case StepKind::kFreeGradient:
      return "the release of the gradient of " + of.NameOf(step.tensor());
    case StepKind::kRun:
      return (has_run ? "another run of " : "run of ") + of.NameOf(step.node());
    case StepKind::kOut:
      return "the copy to the host of " + of.NameOf(step.tensor());
    case StepKind::kDrop:
      return "the drop of " + of.NameOf(step.tensor());
    case StepKind::kIn:
      return "the copy back of " + of.NameOf(step.tensor());
  }
  return "";
}

}  // namespace ckplan
